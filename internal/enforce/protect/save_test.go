package protect

import (
	"reflect"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestSave: what was saved is loaded again, each field, whatever bytes a path has.
func TestSave(t *testing.T) {
	odd := "/\xff\n\x1b\u0085\"=%"
	a := &Audit{
		Paths:    []Compared{{odd, Any, ""}, {"/m", Missing, ""}, {"/i", Index, "/tree"}, {"/d", Denied, ""}},
		Near:     []string{"/near", odd},
		Repos:    []string{"/repo/.git"},
		projects: []project{{"/p", []string{"/p/.envrc", odd}, []string{odd, "/p/.hg"}}, {"/q", nil, nil}},
		Trees:    []string{"/tree"},
		Later:    []resolve.DenyPath{{Pattern: "/tree/**/*.pem", Glob: true}, {Pattern: odd}},
		Mounted:  true,
	}
	s := &Snapshot{
		audit:  a,
		before: []state{{host.Present, host.FileID{Dev: 1, Ino: 1<<64 - 1}, [2]int64{1 << 40, 999999999}, 5, odd, true}, {presence: host.Absent}, {size: 1}, {}},
		named:  map[string]bool{odd: true},
		links:  map[string]bool{"/tree/sub": true},
		left:   maxIndexes,
	}
	for v := reflect.ValueOf(*s); ; v = reflect.ValueOf(*a) { // a new field must be saved, and set here
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "plain" && name != "host" && v.Field(i).IsZero() {
				t.Errorf("%s is not set in this test", name)
			}
		}
		if v.Type() == reflect.TypeOf(*a) {
			break
		}
	}
	got, err := Load(s.Save(), &host.Host{})
	if err != nil {
		t.Fatal(err)
	}
	got.plain, got.host = nil, nil
	if !reflect.DeepEqual(got, s) {
		t.Errorf("loaded %+v %+v\nsaved  %+v %+v", got, got.audit, s, a)
	}
	if _, err := Load([]byte(`{"format":99}`), &host.Host{}); err == nil {
		t.Error("another format was loaded")
	}
}
