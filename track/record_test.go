package track

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/track/internal/object"
)

// drawRecord makes any record that could be written.
func drawRecord(t *rapid.T) *Record {
	text := rapid.String() // any UTF-8; JSON has no other
	pid := rapid.Custom(func(t *rapid.T) ProcID {
		return ProcID{rapid.IntRange(2, 1<<22).Draw(t, "pid"), rapid.Uint64().Draw(t, "start")}
	})
	id := uuid.Must(uuid.FromBytes(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))).String()
	r := &Record{
		ID:         id,
		Name:       rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,30}`)).Draw(t, "name"),
		Host:       text.Draw(t, "host"),
		Boot:       text.Draw(t, "boot"),
		PidNS:      rapid.Uint64().Draw(t, "ns"),
		UID:        rapid.IntRange(0, 1<<31).Draw(t, "uid"),
		Supervisor: pid.Draw(t, "supervisor"),
		Argv:       rapid.SliceOfN(text, 1, 5).Draw(t, "argv"),
		ArgvCut:    rapid.Bool().Draw(t, "cut"),
		Dir:        text.Draw(t, "dir"),
		Started:    time.Unix(rapid.Int64Range(0, 1<<36).Draw(t, "started"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
		Keep:       rapid.Bool().Draw(t, "keep"),
		Exec:       rapid.Bool().Draw(t, "exec"),
		TrackOnly:  rapid.Bool().Draw(t, "track only"),
	}
	return r
}

func TestRecordReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got Record
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, r) {
			t.Fatalf("%+v read back as %+v", r, got)
		}
	})
}

func TestHolderReadsBack(t *testing.T) {
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	rapid.Check(t, func(t *rapid.T) {
		pid := rapid.Custom(func(t *rapid.T) ProcID {
			return ProcID{rapid.IntRange(2, 1<<22).Draw(t, "pid"), rapid.Uint64().Draw(t, "start")}
		})
		h := Holder{Tracker: Kind(rapid.String().Draw(t, "tracker")), Keeper: pid.Draw(t, "keeper"), Command: pid.Draw(t, "command")}
		if rapid.Bool().Draw(t, "group") {
			h.Cgroup = &CgroupRef{Path: "/sys/fs/cgroup/" + cgroupName(id), Inode: rapid.Uint64().Draw(t, "inode"), Unit: rapid.String().Draw(t, "unit")}
		}
		got, err := parseHolder(h.encode(), id)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("%+v read back as %+v, %v", h, got, err)
		}
	})
}

// TestEncodeQuotes: any bytes give valid JSON, and encoding/json reads them as
// it would have written them.
func TestEncodeQuotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := errors.Join(json.Unmarshal(std, &want), json.Unmarshal(object.Quote(nil, s), &got)); err != nil || got != want {
			t.Fatalf("%q: %q, want %q, %v", s, got, want, err)
		}
	})
}

// TestRecordKeepsUnknownFields: a later version's fields survive being
// rewritten by this one.
func TestRecordKeepsUnknownFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		key := "x_" + rapid.StringMatching(`[a-z"\\]{0,8}`).Draw(t, "key")
		val := rapid.String().Draw(t, "value")
		b, _ := json.Marshal(r)
		k, _ := json.Marshal(key)
		v, _ := json.Marshal(val)
		b = []byte(strings.TrimSuffix(string(b), "}") + "," + string(k) + ":" + string(v) + "}")
		var got Record
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(&got)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(again, &m); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if m[key] != val {
			t.Fatalf("%q is %q, was %q", key, m[key], val)
		}
	})
}

func TestRecordOfLaterVersion(t *testing.T) {
	var r Record
	err := json.Unmarshal([]byte(`{"version":2,"id":["not","a","string"]}`), &r)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("%v", err)
	}
}

// TestRecordFieldsAreComplete: a field that MarshalJSON writes and UnmarshalJSON
// does not know by name would come back twice.
func TestRecordFieldsAreComplete(t *testing.T) {
	known := map[string]bool{}
	for _, f := range recordFields() {
		known[f] = true
	}
	typ := reflect.TypeFor[jsonRecord]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if !known[name] {
			t.Errorf("recordFields lacks %q", name)
		}
		delete(known, name)
	}
	if len(known) > 0 {
		t.Errorf("recordFields has too many: %v", known)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","supervisor":{"pid":2,"start":3},"argv":["x"],"started":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"version":1,"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","supervisor":{"pid":-1}}`))
	f.Add([]byte(`{"version":1e99}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		if json.Unmarshal(b, &r) != nil {
			if !reflect.DeepEqual(r, Record{}) {
				t.Fatal("a record that can't be read was read in part")
			}
			return
		}
		if !isID(r.ID) || r.Supervisor.Pid < 0 || r.Supervisor.Pid == 1 || r.Name != "" && CheckName(r.Name) != nil {
			t.Fatalf("accepted: %+v", r)
		}
		again, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		var r2 Record
		if err := json.Unmarshal(again, &r2); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func FuzzHolder(f *testing.F) {
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	f.Add([]byte(`{"tracker":"cgroup","keeper":{"pid":5,"start":6},"cgroup":{"path":"/sys/fs/cgroup/zsbx-f81d4fae-7dec-11d0-a765-00a0c91e6bf6","inode":7}}`))
	f.Add([]byte(`{"cgroup":{"path":"/sys/fs/cgroup"}}`))
	f.Add([]byte(`{"keeper":{"pid":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHolder(b, id)
		if err != nil {
			return
		}
		for _, p := range []ProcID{h.Keeper, h.Command} {
			if p.Pid < 0 || p.Pid == 1 {
				t.Fatalf("accepted: %+v", h)
			}
		}
		if h.Cgroup != nil && !strings.Contains(h.Cgroup.Path[strings.LastIndex(h.Cgroup.Path, "/"):], id) {
			t.Fatalf("accepted: %+v", h.Cgroup)
		}
	})
}

func TestCutArgv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.StringN(0, 300, -1), 0, 100).Draw(t, "argv")
		kept, wasCut := cutArgv(argv)
		n := 0
		for i, a := range kept {
			if !strings.HasPrefix(argv[i], a) || a != argv[i] && i != len(kept)-1 {
				t.Fatalf("argument %d is %q, was %q", i, a, argv[i])
			}
			n += len(a)
		}
		if n > maxArgv || len(kept) > maxArgs {
			t.Fatalf("%d bytes in %d arguments", n, len(kept))
		}
		if !wasCut && !reflect.DeepEqual(kept, argv) && len(argv) > 0 {
			t.Fatal("cut without saying so")
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

// TestCommandLine: what a process calls itself can't write to a terminal.
func TestCommandLine(t *testing.T) {
	for want, argv := range map[string][]string{
		"sleep 10":             {"sleep", "10"},
		"sh -c 'a && b' ''":    {"sh", "-c", "a && b", ""},
		`'it'\''s'`:            {"it's"},
		`$'\x1b[31mred'`:       {"\x1b[31mred"},
		`$'a\nb'`:              {"a\nb"},
		`$'\xff'`:              {"\xff"},
		"'naïve – ok'":         {"naïve – ok"},
		`$'\u202etxt'`:         {"\u202etxt"},
		`$'it\'s\t"quoted"\\'`: {"it's\t\"quoted\"\\"},
	} {
		if got := CommandLine(argv, 0); got != want {
			t.Errorf("%q is %s, want %s", argv, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), 0, 5).Draw(t, "argv")
		width := rapid.IntRange(0, 80).Draw(t, "width")
		s := CommandLine(argv, width)
		for _, r := range s {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("%q has a control character", s)
			}
		}
		if !utf8.ValidString(s) || width > 3 && len(s) > width {
			t.Fatalf("%q: width %d", s, width)
		}
	})
}
