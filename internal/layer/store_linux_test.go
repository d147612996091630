package layer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// TestRecord: what was stored is what is found, whatever bytes the names have.
func TestRecord(t *testing.T) {
	state := t.TempDir() + "/state"
	tree := filepath.Join(t.TempDir(), "a\xff\n\"b")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(tree, &st); err != nil {
		t.Fatal(err)
	}
	want := Record{
		Session: uuid.NewString(), Name: "n", Command: []string{"a\xfe", `"q"`, "\ufffd", ""}, Dir: tree,
		Began: time.Now().UTC().Round(0), Trees: []Tree{{Path: tree, Dev: st.Dev, Ino: st.Ino}},
		Protected: []string{tree + "/.envrc"},
	}
	l, err := Make(state, want)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = recordVersion
	want.Trees[0].Born = l.Trees[0].Born
	got, err := Find(state, want.Session)
	if err != nil || !reflect.DeepEqual(got.Record, want) || got.Dir != l.Dir {
		t.Errorf("%+v, %v, not %+v", got, err, want)
	}
	if _, err := Make(state, want); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second layer of a session: %v", err)
	}
	if _, err := Find(state, want.Session); err != nil {
		t.Errorf("the first is gone: %v", err)
	}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := Find(state, want.Session); !errors.Is(err, errNotFound) {
		t.Errorf("removed: %v", err)
	}
	if err := l.Remove(); err != nil {
		t.Errorf("removed again: %v", err)
	}
}

// TestUpper: the layer's top directory has what the tree has.
func TestUpper(t *testing.T) {
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o2751); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(tree, 0o2751); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(tree, "user.zsbx", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	acl := "\x02\x00\x00\x00" + // system.posix_acl_default: version 2; u::rwx,u:0:rwx,g::r-x,m::rwx,o::---
		"\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\x00\x00\x00\x00" + "\x04\x00\x05\x00\xff\xff\xff\xff" +
		"\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
	if err := unix.Setxattr(tree, "system.posix_acl_default", []byte(acl), 0); err != nil {
		t.Fatal(err)
	}
	l := makeLayer(t, t.TempDir()+"/state", "", tree)
	upper, err := os.Open(l.TreeDir(0) + "/upper")
	if err != nil {
		t.Fatal(err)
	}
	defer upper.Close()
	own, err := AttributesAt(int(upper.Fd()), ".")
	if err != nil || string(own["user.zsbx"]) != "x" || string(own["system.posix_acl_default"]) != acl {
		t.Errorf("%q, %v", own, err)
	}
	e, err := look(upper, ".")
	if err != nil || e.mode != fs.ModeDir|fs.ModeSetgid|0o751 {
		t.Errorf("%v, %v", e.mode, err)
	}
	if all, err := l.Changes(); len(all) > 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// TestFind: a name means the last that had it, and a beginning must mean one.
func TestFind(t *testing.T) {
	state := t.TempDir() + "/state"
	if all, err := All(state); len(all) > 0 || err != nil {
		t.Errorf("no state directory: %v, %v", all, err)
	}
	if _, err := Find(state, "x"); !errors.Is(err, errNotFound) {
		t.Errorf("no state directory: %v", err)
	}
	tree := t.TempDir()
	var ids []string
	for _, name := range []string{"n", "n", ""} {
		ids = append(ids, makeLayer(t, state, name, tree).Session)
	}
	all, err := All(state)
	if err != nil || len(all) != 3 || all[0].Session != ids[0] || all[2].Session != ids[2] {
		t.Errorf("%v, %v", all, err)
	}
	for ref, want := range map[string]string{
		"n": ids[1], ids[0]: ids[0], ids[0][:20]: ids[0], strings.ToUpper(ids[2]): ids[2], "": "", "m": "", "/": "",
	} {
		l, err := Find(state, ref)
		if want == "" && !errors.Is(err, errNotFound) || want != "" && (err != nil || l.Session != want) {
			t.Errorf("%q: %v, %v", ref, l, err)
		}
	}
	other := ids[0][:35] + map[bool]string{true: "1", false: "0"}[ids[0][35] == '0']
	r := all[0].Record
	r.Session = other
	l, err := Make(state, r)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Remove()
	if _, err := Find(state, other[:35]); err == nil || errors.Is(err, errNotFound) || !strings.Contains(err.Error(), other) {
		t.Errorf("a beginning of two: %v", err)
	}
}

// TestDamaged: a layer whose record can't be read is told, listed, and can be thrown away, but not frozen.
func TestDamaged(t *testing.T) {
	for name, do := range map[string]func(record string) error{
		"empty":   func(record string) error { return os.WriteFile(record, nil, 0o600) },
		"cut":     func(record string) error { return os.Truncate(record, 20) },
		"other":   func(record string) error { return os.WriteFile(record, []byte(`{"Version":1,"Session":"x"}`), 0o600) },
		"missing": os.Remove,
		"a FIFO": func(record string) error {
			return errors.Join(os.Remove(record), syscall.Mkfifo(record, 0o600))
		},
		"closed": func(record string) error { return errors.Join(os.Remove(record), os.Mkdir(record, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir() + "/state"
			tree := t.TempDir()
			good := makeLayer(t, state, "good", tree)
			bad := makeLayer(t, state, "bad", tree)
			if err := os.WriteFile(bad.TreeDir(0)+"/upper/f", []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := do(filepath.Join(bad.Dir, recordFile)); err != nil {
				t.Fatal(err)
			}
			all, err := All(state)
			if len(all) != 2 || err == nil || !strings.Contains(err.Error(), bad.Session) {
				t.Errorf("%v, %v", all, err)
			}
			if l, err := Find(state, "good"); err != nil || l.Session != good.Session {
				t.Errorf("%v, %v", l, err)
			}
			if _, err := Find(state, "bad"); !errors.Is(err, errNotFound) || !strings.Contains(err.Error(), bad.Session) || strings.Contains(err.Error(), "\n") {
				t.Errorf("a name that may be the damaged one's: %v", err)
			}
			l, err := Find(state, bad.Session)
			if err != nil || l.Damage == nil {
				t.Fatalf("%+v, %v", l, err)
			}
			if err := l.Freeze(); err == nil || l.Frozen() {
				t.Error("it was frozen")
			}
			changes, err := l.Changes()
			if got := texts(changes); err != nil || !slices.Equal(got, []string{"+ f !" + conflictGone}) {
				t.Errorf("%q, %v", got, err)
			}
			if err := l.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDamagedSeen: without what was noted at the end nothing is a change, and that is an error.
func TestDamagedSeen(t *testing.T) {
	l := makeLayer(t, t.TempDir()+"/state", "", t.TempDir())
	for _, text := range []string{"", "{", "{}", `{"Gone":[true,true]}`} {
		if err := os.WriteFile(filepath.Join(l.Dir, seenFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := l.Changes(); err == nil {
			t.Errorf("%q: %v", text, all)
		}
	}
}

// TestStoreOfOthers: what others can write or link to is not used, and that is told.
func TestStoreOfOthers(t *testing.T) {
	tree := t.TempDir()
	for name, do := range map[string]func(state string) error{
		"the state directory is open": func(state string) error { return os.Chmod(state, 0o777) },
		"the layers are open":         func(state string) error { return os.Chmod(state+"/try", 0o750) },
		"the layers are a link": func(state string) error {
			return errors.Join(os.Rename(state+"/try", state+"/x"), os.Symlink("x", state+"/try"))
		},
		"the layers are a file": func(state string) error {
			return errors.Join(os.RemoveAll(state+"/try"), os.WriteFile(state+"/try", nil, 0o600))
		},
		"another user's": func(state string) error {
			if os.Geteuid() == 0 {
				return os.Chown(state+"/try", 65534, 65534)
			}
			return errors.Join(os.RemoveAll(state+"/try"), os.Symlink("/", state+"/try"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir() + "/state"
			made := makeLayer(t, state, "n", tree)
			if err := made.Remove(); err != nil {
				t.Fatal(err)
			}
			if err := do(state); err != nil {
				t.Fatal(err)
			}
			if _, err := Make(state, made.Record); err == nil {
				t.Error("a layer was made")
			}
			if all, err := All(state); err == nil {
				t.Errorf("%v", all)
			}
			if _, err := Find(state, "n"); err == nil || !strings.Contains(err.Error(), state) {
				t.Error(err)
			}
		})
	}
}

// TestMakeNothing: a layer that can't be made leaves nothing.
func TestMakeNothing(t *testing.T) {
	state := t.TempDir() + "/state"
	tree := t.TempDir()
	good := Record{Session: uuid.NewString(), Trees: []Tree{{Path: tree, Ino: 1}}}
	for name, r := range map[string]Record{
		"another directory": good,
		"no directory":      {Session: good.Session, Trees: []Tree{{Path: tree + "/none"}}},
		"no id":             {Session: "../x"},
	} {
		if l, err := Make(state, r); err == nil {
			t.Errorf("%s: %v", name, l)
		}
		if left, _ := os.ReadDir(state + "/try"); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// TestRemoveInterrupted: what a Remove left that was killed is no layer, and the next one removes it.
func TestRemoveInterrupted(t *testing.T) {
	state := t.TempDir() + "/state"
	tree := t.TempDir()
	half := makeLayer(t, state, "", tree)
	whole := makeLayer(t, state, "", tree)
	if err := os.Rename(half.Dir, filepath.Join(state, StoreDir, doomed+half.Session)); err != nil {
		t.Fatal(err)
	}
	if all, err := All(state); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if err := whole.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(state + "/try"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
