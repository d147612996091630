package track

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// drawRecord draws any record that could be written.
func drawRecord(t *rapid.T) *Record {
	text := rapid.String() // any UTF-8, which is all that JSON can have
	pid := rapid.Custom(func(t *rapid.T) ProcID {
		return ProcID{Pid: rapid.IntRange(2, 1<<22).Draw(t, "pid"), Start: rapid.Uint64().Draw(t, "start")}
	})
	id := uuid.Must(uuid.FromBytes(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))).String()
	r := &Record{
		Version:   recordVersion,
		ID:        id,
		Name:      rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,30}`)).Draw(t, "name"),
		Machine:   proc.Machine{Host: text.Draw(t, "host"), Boot: text.Draw(t, "boot"), PidNS: rapid.Uint64().Draw(t, "ns"), Supervisor: pid.Draw(t, "supervisor")},
		Argv:      rapid.SliceOfN(text, 1, 5).Draw(t, "argv"),
		Dir:       text.Draw(t, "dir"),
		Started:   time.Unix(rapid.Int64Range(0, 1<<36).Draw(t, "started"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
		Keep:      rapid.Bool().Draw(t, "keep"),
		Exec:      rapid.Bool().Draw(t, "exec"),
		TrackOnly: rapid.Bool().Draw(t, "track only"),
		Holder:    Holder{Tracker: Kind(text.Draw(t, "tracker")), Keeper: pid.Draw(t, "keeper"), Command: pid.Draw(t, "command")},
	}
	if rapid.Bool().Draw(t, "group") {
		r.Cgroup = &cgroup.Group{Path: "/sys/fs/cgroup/" + cgroup.Name(id), Inode: rapid.Uint64().Draw(t, "inode"), Unit: text.Draw(t, "unit")}
	}
	return r
}

func TestRecordReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		got, err := parseRecord(object.Of(r), r.ID)
		if err != nil || !reflect.DeepEqual(&got, r) {
			t.Fatalf("%+v read back as %+v, %v", r, got, err)
		}
	})
}

// TestEncodeQuotes: any bytes become valid JSON, and encoding/json reads the same as if it had
// written them.
func TestEncodeQuotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := errors.Join(json.Unmarshal(std, &want), json.Unmarshal(object.Of(s), &got)); err != nil || got != want {
			t.Fatalf("%q: %q, want %q, %v", s, got, want, err)
		}
	})
}

// TestRecordUnknownFields: a record with fields of a later version is read.
func TestRecordUnknownFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		k, _ := json.Marshal("x_" + rapid.StringMatching(`[a-z"\\]{0,8}`).Draw(t, "key"))
		v, _ := json.Marshal(rapid.String().Draw(t, "value"))
		b := []byte(strings.TrimSuffix(string(object.Of(r)), "}") + "," + string(k) + ":" + string(v) + "}")
		if got, err := parseRecord(b, r.ID); err != nil || !reflect.DeepEqual(&got, r) {
			t.Fatalf("%s: %+v, %v", b, got, err)
		}
	})
}

// TestRecordStandard: encoding/json would write the same.
func TestRecordStandard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		var want, got map[string]any
		b, err := json.Marshal(r)
		if err := errors.Join(err, json.Unmarshal(b, &want), json.Unmarshal(object.Of(r), &got)); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v, %v", got, want, err)
		}
	})
}

func TestRecordOfLaterVersion(t *testing.T) {
	_, err := parseRecord([]byte(`{"version":2,"id":["not","a","string"]}`), "x")
	if err == nil || !strings.Contains(err.Error(), "newer version of zsbx (format 2") {
		t.Errorf("%v", err)
	}
}

func FuzzRecord(f *testing.F) {
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","supervisor":{"pid":2,"start":3},"argv":["x"],"started":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","supervisor":{"pid":-1}}`))
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","started":"2026-01-02T03:04:05Z","tracker":"cgroup","keeper":{"pid":5,"start":6},"cgroup":{"path":"/sys/fs/cgroup/zsbx-f81d4fae-7dec-11d0-a765-00a0c91e6bf6","inode":7}}`))
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","keeper":{"pid":5},"cgroup":{"path":"/sys/fs/cgroup"}}`))
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","keeper":{"pid":1}}`))
	f.Add([]byte(`{"version":1e99}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b, id)
		if err != nil {
			if !reflect.DeepEqual(r, Record{}) {
				t.Fatal("a record that can't be read was read in part")
			}
			return
		}
		if r.ID != id || r.Name != "" && CheckName(r.Name) != nil {
			t.Fatalf("accepted: %+v", r)
		}
		for _, p := range []ProcID{r.Supervisor, r.Keeper, r.Command} {
			if p.Pid < 0 {
				t.Fatalf("accepted: %+v", r)
			}
		}
		if r.Cgroup != nil && !strings.Contains(r.Cgroup.Path[strings.LastIndex(r.Cgroup.Path, "/"):], id) {
			t.Fatalf("accepted: %+v", r.Cgroup)
		}
		if _, err := parseRecord(object.Of(&r), id); err != nil {
			t.Fatalf("%s: %v", object.Of(&r), err)
		}
	})
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"build": true, "a.b_c-1": true, "7": true, "": false, "-x": false, ".x": false, "a b": false, "a/b": false, "@x": false,
		"f81d4fae-7dec-11d0-a765-00a0c91e6bf6": false, "ü": false, "x\n": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
