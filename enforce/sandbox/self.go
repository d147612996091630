package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/track"
)

// selfDir is a directory of zsbx's own.
type selfDir struct {
	path   string
	hidden bool // what other commands ran, and which projects are trusted
	temp   bool // in a directory for temporary files
}

// selfDirs are zsbx's own directories: where the variables of this environment
// put them, and where they are without these. The next run may be one without:
// editors, snap and flatpak set them for what they start. The same goes for HOME
// under su and sudo.
func selfDirs(h *policy.Host) []selfDir {
	var out []selfDir
	add := func(d selfDir) {
		if filepath.IsAbs(d.path) && !slices.ContainsFunc(out, func(o selfDir) bool { return o.path == d.path }) {
			out = append(out, d)
		}
	}
	for _, home := range homes(h) {
		add(selfDir{path: filepath.Join(home, ".config/zsbx")})
		add(selfDir{path: filepath.Join(home, ".local/state/zsbx"), hidden: true})
	}
	add(selfDir{path: filepath.Join(h.ConfigHome(), "zsbx")})
	add(selfDir{path: filepath.Join(h.StateHome(), "zsbx"), hidden: true})
	name := "zsbx-" + strconv.Itoa(os.Geteuid())
	add(selfDir{path: filepath.Join("/tmp", name), temp: true})
	add(selfDir{path: filepath.Join(os.TempDir(), name), temp: true})
	return out
}

// homes are the home directories that this user may have.
func homes(h *policy.Host) []string {
	both := []string{h.Getenv("HOME"), policy.PasswdHome()}
	return slices.DeleteFunc(both, func(d string) bool { return !filepath.IsAbs(d) })
}

// selfFiles has a plan hold zsbx's own files: the directories of the user's policy, of the
// trust store and of the sessions, and the policies in use. The directories are
// made where they are missing and the command could make them, or look into
// them once they are there: what does not exist can't be protected, and the
// command would write the next run's policy. One that zsbx may not make, the
// command may not either.
//
// The place for sessions when the first one can't be written lies in the
// directory for temporary files: it is held only with mounts, as otherwise
// nothing new could be made there. Without, it is told of.
func (c *prepared) selfFiles(mounts bool) (self enforce.Options) {
	r := c.resolved
	host := c.host.Remembering()
	dirs := selfDirs(&c.host)
	if c.log != nil {
		dirs = append(dirs, selfDir{path: c.log.Dir.Value, hidden: true})
	}
	for _, d := range dirs {
		if d.temp && isForeignLink(d.path) {
			continue // sessions are not looked for behind a link there
		}
		if d.temp && !mounts {
			if c.host.Getenv(track.SessionEnv) == "" && inTree(r, d.path, policy.Write) { // in a session it is this zsbx that writes there
				self.Watch = append(self.Watch, d.path)
			}
			continue
		}
		access := policy.Write
		if d.hidden {
			access |= policy.Read
		}
		real, links, _, err := host.Trail(d.path)
		reached := slices.ContainsFunc(append(links, real), func(p string) bool { return inTree(r, p, access) })
		if errors.Is(err, fs.ErrNotExist) && reached && r.PlantedLink(&policy.Path{Path: real, Links: links}) == "" {
			if err := makeSelf(&c.host, real); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
				continue
			}
		}
		self.Protect = append(self.Protect, d.path)
		if d.hidden {
			self.Hide = append(self.Hide, d.path)
		}
	}
	self.Protect = append(self.Protect, c.o.PolicyFiles...)
	return self
}

// isForeignLink tells a link that somebody else has put in a place where
// everybody may: it would have zsbx hold what it leads to.
func isForeignLink(p string) bool {
	st, err := os.Lstat(p)
	return err == nil && st.Mode()&fs.ModeSymlink != 0 && !safepath.OwnedBy(st, os.Geteuid())
}

// makeSelf makes one of zsbx's own directories, but none below a home directory
// that does not exist. enforce says what is still missing.
func makeSelf(h *policy.Host, dir string) error {
	for _, home := range homes(h) {
		if _, err := os.Stat(home); err != nil && policy.Within(dir, home) {
			return syscall.Access(filepath.Dir(home), 2) // W_OK: may the command make it?
		}
	}
	return safepath.MakeDir(dir, 0o700, false)
}

// inTree reports whether a path lies in a tree that may be accessed in one of some
// ways.
func inTree(r *policy.Resolved, p string, access policy.Access) bool {
	return slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&access != 0 && policy.Within(p, t.Path)
	})
}
