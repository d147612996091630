package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// findProject finds the project's policies, the outermost first: every
// .zsbx.toml from dir up to the root of the outermost repository around it, and
// that root. All of them count, so that a file or a repository that a command
// makes below can't take back what stands above. Outside of repositories only
// dir itself counts: nobody's directory above is asked. Nor is one asked from
// below in which everybody makes files.
func findProject(dir string) (files []string, root string, err error) {
	count := 0
	for d := dir; ; d = filepath.Dir(d) {
		if d == dir || !slices.Contains(SharedDirs(), d) {
			file := filepath.Join(d, policy.ProjectFile)
			switch _, err := os.Lstat(file); {
			case err == nil:
				files = append(files, file)
			case !errors.Is(err, fs.ErrNotExist):
				return nil, "", &policy.Error{Code: policy.CodePath, Msg: "looking for a project policy", Err: err, Hint: "-C /tmp"}
			}
			if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
				root, count = d, len(files)
			} else if d == dir {
				count = len(files)
			}
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	files = files[:count]
	slices.Reverse(files)
	return files, root, nil
}

// SharedDirs are the directories for everybody's temporary files.
func SharedDirs() []string {
	return []string{"/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp"}
}

// CheckVariables refuses variables that have zsbx make its own files through a link
// that a command may have put there, or below what is no directory. For temporary files
// there is another place then.
func CheckVariables(h *policy.Host) error {
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR"} {
		v := h.Getenv(name)
		if !filepath.IsAbs(v) {
			continue
		}
		if _, err := os.Stat(v + "/."); errors.Is(err, syscall.ENOTDIR) && name != "TMPDIR" {
			return &policy.Error{Code: policy.CodePath, Hint: "unset " + name, Msg: fmt.Sprintf("%s: %s is not a directory", name, v)}
		}
		p := h.Follow(filepath.Clean(v))
		if link := h.PlantedLink(&p); link != "" {
			return &policy.Error{
				Code: policy.CodePath, Hint: "export " + name + "=" + shell.Quote(p.Path),
				Msg: fmt.Sprintf("%s: the link %s, which a command may have put there, leads to %s", name, link, p.Path),
			}
		}
	}
	return nil
}
