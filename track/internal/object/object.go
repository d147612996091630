package object

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Object is a JSON object that is being written. Its keys are not compared.
type Object struct{ b []byte }

// New begins an object.
func New() *Object { return &Object{b: append(make([]byte, 0, 1024), '{')} }

// Of is the object that encoding/json would make of a pointer to a struct whose
// fields have tags, and are strings, lists of them, numbers from 0, booleans,
// times, or embedded pointers to such structs.
func Of(v any) []byte {
	o := New()
	o.fields(reflect.ValueOf(v).Elem())
	return o.End()
}

func (o *Object) fields(v reflect.Value) {
	for i := range v.NumField() {
		name, opt, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if opt == "omitempty" && f.IsZero() {
			continue
		}
		switch x := f.Interface().(type) {
		case string:
			o.Str(name, x)
		case []string:
			o.Strs(name, x)
		case bool:
			o.Raw(name, strconv.AppendBool(nil, x))
		case int, int64:
			o.Num(name, uint64(max(f.Int(), 0)))
		case time.Time:
			o.Time(name, x)
		default:
			if !f.IsNil() {
				o.fields(f.Elem())
			}
		}
	}
}

// End gives the text.
func (o *Object) End() []byte { return append(o.b, '}') }

// Raw adds a value that is JSON already.
func (o *Object) Raw(k string, json []byte) {
	o.key(k)
	o.b = append(o.b, json...)
}

func (o *Object) key(k string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(Quote(o.b, k), ':')
}

// Str adds a string.
func (o *Object) Str(k, v string) {
	o.key(k)
	o.b = Quote(o.b, v)
}

// Optional adds a string, and leaves an empty string out.
func (o *Object) Optional(k, v string) {
	if v != "" {
		o.Str(k, v)
	}
}

// Flag adds true, and leaves false out.
func (o *Object) Flag(k string, v bool) {
	if v {
		o.key(k)
		o.b = append(o.b, "true"...)
	}
}

// Num adds a number.
func (o *Object) Num(k string, v uint64) {
	o.key(k)
	o.b = strconv.AppendUint(o.b, v, 10)
}

// Strs adds a list of strings.
func (o *Object) Strs(k string, vs []string) {
	o.key(k)
	o.b = append(o.b, '[')
	for i, v := range vs {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = Quote(o.b, v)
	}
	o.b = append(o.b, ']')
}

// Time adds a time, in UTC.
func (o *Object) Time(k string, t time.Time) {
	o.key(k)
	o.b = append(t.UTC().AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
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
