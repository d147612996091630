package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

// zsbxDir is one of zsbx's directories.
type zsbxDir struct {
	path   string
	hidden bool // it shows what other commands ran, and which projects are trusted
	temp   bool // in a directory for temporary files
}

// zsbxDirs returns zsbx's directories: those that this environment's variables name, and the
// defaults. The next run may not have the variables: editors, snap and flatpak set them only
// for what they start. The same goes for HOME under su and sudo.
func zsbxDirs(h *host.Host) []zsbxDir {
	var out []zsbxDir
	add := func(d zsbxDir) {
		if filepath.IsAbs(d.path) && !slices.ContainsFunc(out, func(o zsbxDir) bool { return o.path == d.path }) {
			out = append(out, d)
		}
	}
	for _, home := range homes(h) {
		add(zsbxDir{path: filepath.Join(home, ".config/zsbx")})
		add(zsbxDir{path: filepath.Join(home, ".local/state/zsbx"), hidden: true})
	}
	add(zsbxDir{path: filepath.Join(h.ConfigHome(), "zsbx")})
	add(zsbxDir{path: filepath.Join(h.StateHome(), "zsbx"), hidden: true})
	name := "zsbx-" + strconv.Itoa(os.Geteuid())
	add(zsbxDir{path: filepath.Join("/tmp", name), temp: true})
	add(zsbxDir{path: filepath.Join(os.TempDir(), name), temp: true})
	return out
}

// homes returns the home directories that this user may have.
func homes(h *host.Host) []string {
	both := []string{h.Getenv("HOME"), host.PasswdHome()}
	return slices.DeleteFunc(both, func(d string) bool { return !filepath.IsAbs(d) })
}

// zsbxFiles returns what makes a plan protect zsbx's own files: the directories of the
// user's policy, of the trust store and of the sessions, and the policies in use. A
// missing directory is made if the command could make it, or could look into it later:
// what does not exist can't be protected, and the command could write the next run's
// policy. If zsbx may not make it, the command may not either.
//
// The second choice for sessions is a place in the directory for temporary files. It
// is protected only with mounts, as otherwise nothing new could be made in that
// directory. Without mounts, changes are reported.
func (c *prepared) zsbxFiles(h *host.Host, mounts bool) (self enforce.Options) {
	r := c.resolved
	dirs := zsbxDirs(&c.host)
	if c.log != nil {
		dirs = append(dirs, zsbxDir{path: c.log.Dir.Value, hidden: true})
	}
	for _, d := range dirs {
		real, links, _, err := h.Trail(d.path)
		if d.temp && len(links) > 0 && isForeignLink(d.path) {
			continue // sessions are not looked for behind a link there
		}
		if d.temp && !mounts {
			// In a session this zsbx itself writes there.
			if c.host.Getenv(track.SessionEnv) == "" && inTree(r, d.path, policy.Write) {
				self.Compare = append(self.Compare, d.path)
			}
			continue
		}
		access := policy.Write
		if d.hidden {
			access |= policy.Read
		}
		reached := slices.ContainsFunc(append(links, real), func(p string) bool { return inTree(r, p, access) })
		if errors.Is(err, fs.ErrNotExist) && reached && r.PlantedLink(real, links) == "" {
			err := makeZsbxDir(&c.host, real)
			*h = *c.host.Remembering() // anew
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
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

// isForeignLink reports whether p is a link that another user has made, in a directory
// where everybody may. Because of it zsbx would protect what it leads to.
func isForeignLink(p string) bool {
	st, err := os.Lstat(p)
	return err == nil && st.Mode()&fs.ModeSymlink != 0 && !safepath.OwnedBy(st, os.Geteuid())
}

// makeZsbxDir makes one of zsbx's own directories, but none below a home directory
// that does not exist. Package enforce reports what is still missing.
func makeZsbxDir(h *host.Host, dir string) error {
	for _, home := range homes(h) {
		if _, err := os.Stat(home); err != nil && host.Within(dir, home) {
			return syscall.Access(filepath.Dir(home), 2) // W_OK: may the command make it?
		}
	}
	return safepath.MakeDir(dir, 0o700, false)
}

// inTree reports whether p is in a tree that allows any of access.
func inTree(r *resolve.Resolved, p string, access policy.Access) bool {
	return slices.ContainsFunc(r.Paths, func(t resolve.Path) bool {
		return t.Access&access != 0 && host.Within(p, t.Path)
	})
}
