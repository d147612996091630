package seatbelt_test

import "fmt"

// String reads one string, or one (string-append ...) of strings.
func String(src string) (string, error) {
	ns, err := readAll(src)
	if err != nil {
		return "", err
	}
	if len(ns) != 1 {
		return "", fmt.Errorf("%d forms", len(ns))
	}
	v, err := new(Profile).eval(ns[0])
	if err == nil && !v.isString {
		err = fmt.Errorf("not a string")
	}
	return v.text, err
}

// Strings returns all strings of a text in order. Those that string-append joins are one.
func Strings(src string) ([]string, error) {
	ns, err := readAll(src)
	if err != nil {
		return nil, err
	}
	var out []string
	var walk func(n node) error
	walk = func(n node) error {
		switch {
		case n.kind == stringNode:
			out = append(out, n.text)
		case n.head() == "string-append":
			v, err := new(Profile).eval(n)
			out = append(out, v.text)
			return err
		case n.kind == listNode:
			for _, e := range n.list {
				if err := walk(e); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, n := range ns {
		if err := walk(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}
