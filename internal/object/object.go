package object

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Of returns v as JSON. It differs from encoding/json in the characters that doc.go names
// and in these points: a nil slice is an empty list, a number below 0 is 0, times are in
// UTC, bytes are taken as JSON, and an embedded struct that is zero is left out. Keys of
// maps must be strings, and no methods are called.
func Of(v any) []byte {
	return value(make([]byte, 0, 1024), reflect.ValueOf(v))
}

func value(b []byte, v reflect.Value) []byte {
	switch {
	case v.CanInt():
		return strconv.AppendInt(b, max(v.Int(), 0), 10)
	case v.CanUint():
		return strconv.AppendUint(b, v.Uint(), 10)
	case v.CanFloat():
		return strconv.AppendFloat(b, v.Float(), 'f', -1, 64)
	}
	switch v.Kind() {
	case reflect.String:
		return quote(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return value(b, v.Elem())
	case reflect.Slice:
		return list(b, v)
	case reflect.Map:
		return keys(b, v)
	}
	if t, ok := v.Interface().(time.Time); ok {
		return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
	}
	return closed(fields(append(b, '{'), v), '}')
}

// list appends a slice. Bytes are JSON already.
func list(b []byte, v reflect.Value) []byte {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return append(b, v.Bytes()...)
	}
	b = append(b, '[')
	for i := range v.Len() {
		b = append(value(b, v.Index(i)), ',')
	}
	return closed(b, ']')
}

// keys appends a map, sorted by its keys.
func keys(b []byte, v reflect.Value) []byte {
	byName := func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) }
	b = append(b, '{')
	for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), byName) {
		b = append(value(append(quote(b, k.String()), ':'), v.MapIndex(k)), ',')
	}
	return closed(b, '}')
}

// closed ends a list. The bracket replaces its last comma.
func closed(b []byte, bracket byte) []byte {
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, bracket)
}

// fields appends the fields of a struct and of its embedded structs, each with a comma.
func fields(b []byte, v reflect.Value) []byte {
	for i := range v.NumField() {
		f := v.Field(i)
		typ := v.Type().Field(i)
		name, opt, _ := strings.Cut(typ.Tag.Get("json"), ",")
		empty := f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0
		if name == "-" || opt != "" && empty { // opt is omitempty or omitzero
			continue
		}
		if typ.Anonymous {
			if !f.IsZero() {
				b = fields(b, reflect.Indirect(f))
			}
			continue
		}
		if typ.IsExported() {
			b = append(value(append(quote(b, cmp.Or(name, typ.Name)), ':'), f), ',')
		}
	}
	return b
}

func quote(b []byte, s string) []byte {
	b = append(b, '"')
	plain := 0 // where the bytes begin that are copied as they are
	for i, r := range s {
		if r >= ' ' && r < unicode.MaxASCII && r != '"' && r != '\\' {
			continue
		}
		b = append(b, s[plain:i]...)
		_, size := utf8.DecodeRuneInString(s[i:])
		plain = i + size
		b = escape(b, r, s[i])
	}
	return append(append(b, s[plain:]...), '"')
}

// escape appends a character as it is written in JSON. first is the first byte of the character: a
// byte that is not UTF-8 is no character.
func escape(b []byte, r rune, first byte) []byte {
	if r == utf8.RuneError && first != "\uFFFD"[0] {
		return fmt.Appendf(b, `\udc%02x`, first)
	}
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\t':
		return append(b, `\t`...)
	}
	if !Hidden(r) {
		return utf8.AppendRune(b, r)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		b = fmt.Appendf(b, `\u%04x`, unit)
	}
	return b
}

// Hidden reports whether r is a control character, or can make a text look like another
// one: it changes the direction of writing, ends a line for some programs only, has no
// width (Unicode's Default_Ignorable_Code_Point, and the separators of lines and
// paragraphs), or is the Braille pattern without a dot, which looks like a space. The two
// variation selectors for emojis are not hidden.
func Hidden(r rune) bool {
	switch {
	case r <= unicode.MaxASCII:
		return unicode.IsControl(r)
	case r == '\uFE0E' || r == '\uFE0F':
		return false
	}
	return r == '\u2800' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
