package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// writeJSON writes v as JSON in which no character can steer a terminal: names
// and command lines are somebody else's. JSON itself leaves U+0080 to U+009F and
// format characters as they are. A byte that is not UTF-8 becomes a lone surrogate,
// as Python's surrogateescape has it (PEP 383): 0x80 is \udc80.
func writeJSON(w io.Writer, v any, indent string) error {
	odd := reflect.New(reflect.TypeOf(v)).Elem()
	odd.Set(reflect.ValueOf(v))
	keepBytes(odd)
	v = odd.Interface()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(surrogates(b.Bytes())))
	return err
}

// keepBytes makes lists empty that are nil, which JSON has as null, and marks each byte of v's strings that is not UTF-8: a NUL, which no name and
// no argument has, and two digits stand for it. What v shares with others is changed
// with it: it is for printing alone.
func keepBytes(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); v.CanSet() && !utf8.ValidString(s) {
			var b strings.Builder
			for i, r := range s {
				if r == utf8.RuneError && s[i] != "\uFFFD"[0] {
					fmt.Fprintf(&b, "\x00%02x", s[i])
				} else {
					b.WriteRune(r)
				}
			}
			v.SetString(b.String())
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			keepBytes(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				keepBytes(f)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			keepBytes(e)
			v.SetMapIndex(k, e)
		}
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() {
			e := reflect.New(v.Elem().Type()).Elem()
			e.Set(v.Elem())
			keepBytes(e)
			v.Set(e)
		}
	case reflect.Pointer:
		keepBytes(v.Elem())
	}
}

// surrogates writes the marks of keepBytes, as JSON has them, as surrogates.
func surrogates(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u0000`)) {
		return text
	}
	pairs := []string{`\\`, `\\`} // a backslash that stands for itself
	for b := 0x80; b <= 0xff; b++ {
		pairs = append(pairs, fmt.Sprintf(`\u0000%02x`, b), fmt.Sprintf(`\udc%02x`, b))
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}

// escapeJSON escapes such characters, which JSON text has in strings only.
func escapeJSON(text []byte) []byte {
	steers := func(r rune) bool { return r != '\n' && unprintable(r) }
	if !bytes.ContainsFunc(text, steers) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if !steers(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}
