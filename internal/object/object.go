package object

import (
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

// Of is what encoding/json would make of v, but for the characters that doc.go names:
// a list that is nil is empty, not null, a number below 0 is 0, times are in UTC, bytes
// are JSON already, and what is embedded is left out where all of it is zero. Keys of
// maps are strings, and methods are not asked.
func Of(v any) []byte {
	return value(make([]byte, 0, 1024), reflect.ValueOf(v))
}

func value(b []byte, v reflect.Value) []byte {
	switch kind := v.Kind(); {
	case v.CanInt():
		return strconv.AppendInt(b, max(v.Int(), 0), 10)
	case v.CanUint():
		return strconv.AppendUint(b, v.Uint(), 10)
	case v.CanFloat():
		return strconv.AppendFloat(b, v.Float(), 'f', -1, 64)
	case kind == reflect.String:
		return quote(b, v.String())
	case kind == reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case kind == reflect.Pointer || kind == reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return value(b, v.Elem())
	case kind == reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...)
		}
		b = append(b, '[')
		for i := range v.Len() {
			b = append(value(b, v.Index(i)), ',')
		}
		return closed(b, ']')
	case kind == reflect.Map:
		b = append(b, '{')
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) }) {
			b = append(value(append(quote(b, k.String()), ':'), v.MapIndex(k)), ',')
		}
		return closed(b, '}')
	}
	if t, ok := v.Interface().(time.Time); ok {
		return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
	}
	return closed(fields(append(b, '{'), v), '}')
}

// closed ends a list: its last comma becomes the bracket.
func closed(b []byte, bracket byte) []byte {
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, bracket)
}

// fields appends the fields of a struct, each with a comma, and those of what is
// embedded.
func fields(b []byte, v reflect.Value) []byte {
	for i := range v.NumField() {
		f, typ := v.Field(i), v.Type().Field(i)
		name, opt, _ := strings.Cut(typ.Tag.Get("json"), ",")
		empty := f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0
		switch {
		case name == "-", !typ.IsExported() && !typ.Anonymous, typ.Anonymous && f.IsZero(), opt != "" && empty: // omitempty or omitzero
		case typ.Anonymous:
			b = fields(b, reflect.Indirect(f))
		case name == "":
			b = append(value(append(quote(b, typ.Name), ':'), f), ',')
		default:
			b = append(value(append(quote(b, name), ':'), f), ',')
		}
	}
	return b
}

func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for i, r := range s {
		switch {
		case r == utf8.RuneError && s[i] != "\uFFFD"[0]:
			b = fmt.Appendf(b, `\udc%02x`, s[i])
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case Hidden(r):
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// Hidden reports control characters, and those by which a text is not what it looks
// like: those that steer the direction of writing, end a line for some programs only,
// or have no width (Unicode's Default_Ignorable_Code_Point, and the separators of
// lines and paragraphs), and the pattern of Braille without a dot, which is a space to
// the eye. The two that choose between the looks of an emoji hide nothing.
func Hidden(r rune) bool {
	switch {
	case r <= unicode.MaxASCII:
		return unicode.IsControl(r)
	case r == '\uFE0E' || r == '\uFE0F':
		return false
	}
	return r == '\u2800' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
