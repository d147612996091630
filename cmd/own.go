package cmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// ownFiles are zsbx's own files and directories: what no command may change,
// what none needs to look into, and what can only be watched.
type ownFiles struct{ held, hidden, watched []string }

// ownDir is a directory of zsbx's own.
type ownDir struct {
	path   string
	home   string // never made unless this exists; "" for nothing
	hidden bool   // what other commands ran, and which projects are trusted
	temp   bool   // in a directory for temporary files
}

// ownDirs are zsbx's own directories: where the variables of this environment
// put them, and where they are without these. The next run may be one without:
// editors, snap and flatpak set them for what they start. The same goes for HOME
// under su and sudo.
func (a *app) ownDirs() []ownDir {
	var out []ownDir
	add := func(d ownDir) {
		if filepath.IsAbs(d.path) && !slices.ContainsFunc(out, func(o ownDir) bool { return o.path == d.path }) {
			out = append(out, d)
		}
	}
	for _, home := range []string{a.getenv("HOME"), policy.PasswdHome()} {
		add(ownDir{path: filepath.Join(home, ".config/zsbx"), home: home})
		add(ownDir{path: filepath.Join(home, ".local/state/zsbx"), home: home, hidden: true})
	}
	add(ownDir{path: filepath.Join(a.configHome(), "zsbx")})
	add(ownDir{path: filepath.Join(a.stateHome(), "zsbx"), hidden: true})
	name := "zsbx-" + strconv.Itoa(os.Geteuid())
	add(ownDir{path: filepath.Join("/tmp", name), temp: true})
	add(ownDir{path: filepath.Join(os.TempDir(), name), temp: true})
	return out
}

// ownPaths are zsbx's own files: the directories of the user's policy, of the
// trust store and of the sessions, and the policies in use. The directories are
// made where they are missing and the command could make them, or look into
// them once they are there: what does not exist can't be protected, and the
// command would write the next run's policy. One that zsbx may not make, the
// command may not either.
//
// The place for sessions when the first one can't be written lies in the
// directory for temporary files: it is held only with mounts, as otherwise
// nothing new could be made there. Without, it is told of.
func (a *app) ownPaths(c *composed, r *policy.Resolved, mounts bool) ownFiles {
	var own ownFiles
	host := c.host.Remembering()
	for _, d := range a.ownDirs() {
		if d.temp && isForeignLink(d.path) {
			continue // sessions are not looked for behind a link there
		}
		if d.temp && !mounts {
			if a.getenv(track.SessionEnv) == "" && inTree(r, d.path, policy.Write) { // in a session it is this zsbx that writes there
				own.watched = append(own.watched, d.path)
			}
			continue
		}
		access := policy.Write
		if d.hidden {
			access |= policy.Read
		}
		real, links, _, err := host.Trail(d.path)
		reached := slices.ContainsFunc(append(links, real), func(p string) bool { return inTree(r, p, access) })
		if errors.Is(err, fs.ErrNotExist) && reached && throughLink(r, &policy.Path{Path: real, Links: links}) == "" {
			if err := makeOwn(real, d.home); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
				continue
			}
		}
		own.held = append(own.held, d.path)
		if d.hidden {
			own.hidden = append(own.hidden, d.path)
		}
	}
	own.held = append(own.held, c.files...)
	return own
}

// isForeignLink tells a link that somebody else has put in a place where
// everybody may: it would have zsbx hold what it leads to.
func isForeignLink(p string) bool {
	st, err := os.Lstat(p)
	return err == nil && st.Mode()&fs.ModeSymlink != 0 && !ownedByMe(st)
}

// makeOwn makes one of zsbx's own directories, but none below a home directory
// that does not exist. enforce says what is still missing.
func makeOwn(dir, home string) error {
	for _, d := range upwards(filepath.Clean(home)) {
		if _, err := os.Stat(d); err == nil {
			if d == filepath.Clean(home) || home == "" {
				return makePath(dir, false)
			}
			const wOK = 2 // W_OK of access(2)
			return syscall.Access(d, wOK)
		}
	}
	return fs.ErrNotExist
}

// inTree reports whether a path lies in a tree that may be accessed in one of some
// ways.
func inTree(r *policy.Resolved, p string, access policy.Access) bool {
	return slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&access != 0 && (p == t.Path || t.Path == "/" || strings.HasPrefix(p, t.Path+"/"))
	})
}
