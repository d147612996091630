package resolve_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestForeignNames: a profile that is printed for another system has the names that the user
// wrote, and none of this machine.
func TestForeignNames(t *testing.T) {
	here := fstest.MapFS{"aaa/x": {}, "srv/app/main.go": {}}
	rel := func(p string) string {
		if p == "/" {
			return "."
		}
		return p[1:]
	}
	h := host.Foreign(host.Host{
		OS: "macos", Dir: "/srv/app", Home: "/home/me",
		Lstat: func(p string) (host.Stat, error) {
			fi, err := fs.Stat(here, rel(p))
			if err != nil {
				return host.Stat{}, err
			}
			return host.Stat{Mode: fi.Mode()}, nil
		},
		Readlink: func(string) (string, error) { return "", fs.ErrInvalid },
		ReadDir:  func(p string, n int) ([]fs.DirEntry, error) { return fs.ReadDir(here, rel(p)) },
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	})
	for written, want := range map[string]string{
		"/tmp/x": "/private/tmp/x", "/opt/tools": "/opt/tools", "/Users/you": "/Users/you", "/srv/app": "/srv/app",
	} {
		p := policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: written, Access: policy.Read, Origin: policy.Origin{Source: "--ro"}}}}}
		r, err := resolve.Policy(&p, h)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Paths) != 1 || r.Paths[0].Path != want {
			t.Errorf("%s becomes %+v, want %s", written, r.Paths, want)
		}
	}
}

// TestForeignDevices: devices are printed as on a Mac: they can be written, but not removed.
func TestForeignDevices(t *testing.T) {
	nowhere := func(string) (host.Stat, error) { return host.Stat{Mode: fs.ModeDir}, nil }
	h := host.Foreign(host.Host{
		OS: "macos", Dir: "/srv/app", Home: "/home/me", Lstat: nowhere,
		Readlink: func(string) (string, error) { return "", fs.ErrInvalid },
		ReadDir:  func(string, int) ([]fs.DirEntry, error) { return nil, nil },
	})
	r, err := resolve.Policy(policy.Baseline("macos"), h)
	if err != nil {
		t.Fatal(err)
	}
	text, err := enforce.SeatbeltProfile(r, enforce.SeatbeltOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]bool{
		`(allow file-read* file-write-data file-ioctl (literal "/dev/null"))`: true,
		`(subpath "/dev/null")`: false, `(subpath "/dev/autofs_nowait")`: false,
	} {
		if strings.Contains(text, rule) != want {
			t.Errorf("%s: %v", rule, !want)
		}
	}
}
