package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func startLine(at time.Time, session string, argv ...string) *AuditLine {
	return &AuditLine{Event: "start", Time: at, Session: session, AuditStart: &AuditStart{Dir: "/x", Command: argv, Layers: []string{}, Gaps: []string{}}}
}

func readLines(t *testing.T, dir string) (lines []AuditLine, damaged int) {
	t.Helper()
	all, damaged, err := ReadAudit(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, l := range []*AuditLine{s.Start, s.End} {
			if l != nil {
				lines = append(lines, *l)
			}
		}
	}
	return lines, damaged
}

// TestAuditLine: what is written can be read back, whatever bytes a command line has, and is one
// line.
func TestAuditLine(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	at := time.Date(2026, 3, 29, 1, 30, 0, 5, time.FixedZone("CEST", 7200))
	want := startLine(at.UTC(), "s", "a\nb", "\x1b[31m", "\u0085\"\\", "ü")
	want.AuditStart.Name, want.AuditStart.Policy, want.AuditStart.UID, want.AuditStart.TrackOnly, want.AuditStart.CommandCut, want.AuditStart.InPlace = "n", "h", 7, true, true, true
	want.AuditStart.Layers, want.AuditStart.Gaps = []string{"landlock"}, []string{"ipc (by default)"}
	end := &AuditLine{Event: "end", Time: at.UTC(), Session: "s",
		AuditEnd: &AuditEnd{Status: 137, Error: "x\ny", Signal: 9, TimedOut: true, DurationMS: 5, OutputBytes: 6, Killed: 7, Kept: true}}
	for _, l := range []*AuditLine{want, end, startLine(at, "t", "\xff")} {
		if err := appendLine(dir, 1, l); err != nil {
			t.Fatal(err)
		}
	}
	got, damaged := readLines(t, dir)
	if damaged != 0 || len(got) != 3 || !reflect.DeepEqual(&got[0], want) || !reflect.DeepEqual(&got[1], end) || got[2].Command[0] != "\uFFFD" {
		t.Errorf("got %+v, %d damaged", got, damaged)
	}
	data, err := os.ReadFile(filepath.Join(dir, "2026-03-28.jsonl")) // the day in UTC
	if err != nil || strings.Count(string(data), "\n") != 3 || strings.ContainsAny(string(data), "\x1b\u0085") {
		t.Errorf("%q, %v", data, err)
	}
	for l := range strings.Lines(string(data)) {
		if !json.Valid([]byte(l)) {
			t.Errorf("%q is no JSON", l)
		}
	}
}

// TestAuditConcurrent: 200 runs at once, each with a long line, lose and mix none.
func TestAuditConcurrent(t *testing.T) {
	dir, at := t.TempDir(), time.Now()
	os.Chmod(dir, 0o700)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if err := appendLine(dir, 1, startLine(at, fmt.Sprint(i), strings.Repeat(string(rune('a'+i%26)), 10_000))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lines, damaged := readLines(t, dir)
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l.Session] = strings.Trim(l.Command[0], l.Command[0][:1]) == ""
	}
	if len(seen) != 200 || len(lines) != 200 || damaged != 0 {
		t.Errorf("%d lines of %d sessions, %d damaged", len(lines), len(seen), damaged)
	}
}

// TestAuditDays: if the clock goes back, the earlier file is written. A change of the local time
// changes nothing. The first line of a day removes old files.
func TestAuditDays(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	day := time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC)
	put := func(at time.Time, keep int) {
		t.Helper()
		if err := appendLine(dir, keep, startLine(at, at.Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
	}
	names := func() string {
		all, _ := filepath.Glob(filepath.Join(dir, "*"))
		for i := range all {
			all[i] = strings.TrimSuffix(filepath.Base(all[i]), ".jsonl")
		}
		return strings.Join(all, " ")
	}
	put(day, 0)
	put(day.Add(time.Second), 0)
	put(day.Add(-time.Hour), 0) // back
	if got := names(); got != "2026-11-22 2026-11-23" {
		t.Error(got)
	}
	if lines, _ := readLines(t, dir); len(lines) != 3 || lines[1].Time.After(lines[0].Time) {
		t.Errorf("%+v", lines)
	}
	os.WriteFile(filepath.Join(dir, "2020-01-01.jsonl"), nil, 0o600)
	os.WriteFile(filepath.Join(dir, "2020-01-01.txt"), nil, 0o600)
	os.WriteFile(filepath.Join(dir, "2020-99-01.jsonl"), nil, 0o600)
	put(day, 1) // not the first of its day
	put(day.AddDate(0, 0, 2), 1)
	if got := names(); got != "2020-01-01.txt 2020-99-01 2026-11-23 2026-11-24" {
		t.Error(got)
	}
}

// TestAuditTorn: if a full disk cuts off a line, only that line is lost.
func TestAuditTorn(t *testing.T) {
	dir, at := t.TempDir(), time.Now()
	os.Chmod(dir, 0o700)
	name := filepath.Join(dir, at.UTC().Format(time.DateOnly)+".jsonl")
	os.WriteFile(name, []byte(`{"event":"start","session":"x","comm`), 0o600)
	if err := appendLine(dir, 1, startLine(at, "y")); err != nil {
		t.Fatal(err)
	}
	lines, damaged := readLines(t, dir)
	if len(lines) != 1 || lines[0].Session != "y" || damaged != 1 {
		t.Errorf("%+v, %d", lines, damaged)
	}
	if text, _ := os.ReadFile(name); strings.Count(string(text), "\n") != 2 {
		t.Errorf("the next line is not one of its own: %s", text)
	}
}

func TestAuditRedact(t *testing.T) {
	for _, tt := range []struct{ in, want []string }{
		{[]string{"make", "-j4", "CC=gcc"}, []string{"make", "-j4", "CC=***"}},
		{[]string{"dd", "if=/dev/zero", "of=x"}, []string{"dd", "if=/dev/zero", "of=x"}},
		{[]string{"env", "AWS_SECRET=x", "true"}, []string{"env", "AWS_SECRET=***", "true"}},
		{[]string{"x", "--password", "p", "y"}, []string{"x", "--password", "***", "y"}},
		{[]string{"x", "--password=p", "y"}, []string{"x", "--password=***", "y"}},
		{[]string{"x", "--token-file", "--y"}, []string{"x", "--token-file", "--y"}},
		{[]string{"sh", "-c", "cd x && DB_PASS='a b' ./run"}, []string{"sh", "-c", "cd x && DB_PASS=***"}},
		{[]string{"sh", "-c", `curl -H "Authorization: Bearer abc" u`}, []string{"sh", "-c", `curl -H "Authorization:***`}},
		{[]string{"curl", "-H", "X-Api-Key: abc"}, []string{"curl", "-H", "X-Api-Key:***"}},
		{[]string{"sh", "-c", "mysql --password hunter2 db"}, []string{"sh", "-c", "mysql --password ***"}},
		{[]string{"curl", "-u", "me@h.org:p", "u"}, []string{"curl", "-u", "me@h.org:***", "u"}},
		{[]string{"sh", "-c", "curl -u ${ME}:p u"}, []string{"sh", "-c", "curl -u ${ME}:***"}},
		{[]string{"sqlcmd", "server=h;pwd=p"}, []string{"sqlcmd", "server=h;pwd=***"}},
		{[]string{"git", "clone", "https://u:p@h/x"}, []string{"git", "clone", "https://***"}},
		{[]string{"git", "clone", "https://h/x", "git@h:x"}, []string{"git", "clone", "https://h/x", "git@h:x"}},
		{[]string{"curl", "https://h/?a=1&token=x", "https://h/?token=x"}, []string{"curl", "https://h/?a=1&token=***", "https://h/?token=***"}},
		{[]string{"sh", "-c", "[ a = b ]"}, []string{"sh", "-c", "[ a = b ]"}},
		{[]string{"x", "ghp_0123456789abcdef", "eyJhbGciOiJIUzI1NiJ9.e30.x"}, []string{"x", "***", "***"}},
		{[]string{"curl", "-u", "me:hunter2", "u"}, []string{"curl", "-u", "me:***", "u"}},
		{[]string{"sh", "-c", "curl --proxy-user me:hunter2 u"}, []string{"sh", "-c", "curl --proxy-user me:***"}},
		{[]string{"sudo", "-u", "me", "ls", "a:b"}, []string{"sudo", "-u", "me", "ls", "a:b"}},
		{[]string{"git", "checkout", "sk-1"}, []string{"git", "checkout", "sk-1"}},
		{[]string{"x", "", "\xff"}, []string{"x", "", "\xff"}},
		{[]string{"x", `{"a":1,"password": "hunter2"}`}, []string{"x", `{"a":1,"password":***`}},
		{[]string{"x", "a.jar:lib/TOKEN=abc:b", "a=b=c:secret=d"}, []string{"x", "a.jar:lib/TOKEN=***", "a=b=c:secret=***"}},
		{[]string{"x", "--password", "a/b", "--password=", "y"}, []string{"x", "--password", "***", "--password=***", "y"}},
		{[]string{"cmake", "-DBUILD_TYPE=Release", "--key-file", "/x/y"}, []string{"cmake", "-DBUILD_TYPE=Release", "--key-file", "/***"}},
		{[]string{"x", "postgres://u:p@h/d", "http://token@h/"}, []string{"x", "postgres://***", "http://***"}},
		{[]string{"x", "postgres://u:p/w@h", "postgres://u:p?w@h", "postgres://u:p#w@h", "postgres://u:p,w@h"}, []string{"x", "postgres://***", "postgres://***", "postgres://***", "postgres://***"}},
		{[]string{"sh", "-c", "x postgres://u:/@w@h/d y"}, []string{"sh", "-c", "x postgres://***"}},
		{[]string{"sh", "-c", "curl http://h:80/x me@h http://h/@x ://"}, []string{"sh", "-c", "curl http://h:80/x me@h http://h/@x ://"}},
	} {
		if got, cut := redact(tt.in); !reflect.DeepEqual(got, tt.want) || cut {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
	got, cut := redact([]string{strings.Repeat("x", 1<<20), "y"})
	if !cut || len(got) != 1 || len(got[0]) > 17<<10 {
		t.Errorf("%d words, %v", len(got), cut)
	}
}

// TestAuditForeign: nothing is written through a link, or where others may write.
func TestAuditForeign(t *testing.T) {
	dir := t.TempDir()
	to, link := filepath.Join(dir, "to"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(to, 0o700), os.Symlink(to, link)); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	if err := appendLine(to, 1, startLine(at, "x")); err != nil {
		t.Errorf("control: %v", err)
	}
	for _, d := range []string{to, link} {
		if all, _, err := ReadAudit(d); len(all) != 1 || err != nil {
			t.Errorf("control: %d sessions, %v", len(all), err)
		}
	}
	if err := appendLine(link, 1, startLine(at, "x")); err == nil {
		t.Error("a link is followed")
	}
	name := filepath.Join(to, at.UTC().Format(time.DateOnly)+".jsonl")
	if err := errors.Join(os.Rename(name, filepath.Join(dir, "other")), os.Symlink("../other", name)); err != nil {
		t.Fatal(err)
	}
	if err := appendLine(to, 1, startLine(at, "x")); err == nil {
		t.Error("a file's link is followed")
	}
	if all, _, err := ReadAudit(to); len(all) != 0 || err == nil {
		t.Errorf("a file's link is read: %v", err)
	}
	os.Remove(name)
	os.Chmod(to, 0o770)
	if err := appendLine(to, 1, startLine(at, "x")); err == nil || !strings.Contains(err.Error(), "can be changed by others") {
		t.Error(err)
	}
	if _, _, err := ReadAudit(to); err == nil || !strings.Contains(err.Error(), "can be changed by others") {
		t.Error(err)
	}
	if all, _ := os.ReadDir(to); len(all) != 0 {
		t.Errorf("%v was made", all)
	}
}
