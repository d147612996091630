package object

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Of is the object that encoding/json would make of a pointer to a struct whose
// fields have tags, and are strings, lists of them, numbers from 0, booleans,
// times, or such structs.
func Of(v any) []byte {
	return value(make([]byte, 0, 1024), reflect.ValueOf(v).Elem())
}

// value appends a value.
func value(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return Quote(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, max(v.Int(), 0), 10)
	case reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Pointer:
		return value(b, v.Elem())
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			b = append(value(b, v.Index(i)), ',')
		}
		return closed(b, ']')
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

// fields appends the fields of a struct, each with a comma.
func fields(b []byte, v reflect.Value) []byte {
	for i := range v.NumField() {
		f, typ := v.Field(i), v.Type().Field(i)
		name, opt, _ := strings.Cut(typ.Tag.Get("json"), ",")
		switch {
		case typ.Anonymous && f.IsZero(), opt == "omitempty" && f.IsZero():
		case typ.Anonymous:
			b = fields(b, reflect.Indirect(f))
		default:
			b = append(value(append(Quote(b, name), ':'), f), ',')
		}
	}
	return b
}

// Quote appends s as a JSON string; bytes that are no UTF-8 become the
// replacement character.
func Quote(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ', r >= 0x7f && r < 0xa0: // what steers a terminal
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
