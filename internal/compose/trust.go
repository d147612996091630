package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// trustRecord is what the trust store keeps for one project policy.
type trustRecord struct {
	// canonical except the last name: a link to another project's file must not get its trust
	Path   string    `json:"path"`
	SHA256 string    `json:"sha256"` // of the content, hexadecimal
	Time   time.Time `json:"time"`
}

// Project is a project's policy as it was read: what is hashed is what is
// decoded.
type Project struct {
	File string
	Asks []policy.Wider // what it asks for beyond the policies before it

	host   *host.Host
	data   []byte
	policy *policy.Policy
}

// SHA256 returns the hash of the content, in hexadecimal.
func (p *Project) SHA256() string {
	sum := sha256.Sum256(p.data)
	return hex.EncodeToString(sum[:])
}

// Trusted reports whether the user has trusted the policy with this content.
func (p *Project) Trusted() bool {
	_, same, _ := trusted(p.host, p.File, p.SHA256())
	return same
}

// Projects reads the project's policies, each on top of those before it. It does not
// check trust.
func Projects(h *host.Host) ([]*Project, error) {
	if err := CheckVariables(h); err != nil {
		return nil, err
	}
	_, base, err := UserPolicy(h)
	if err != nil {
		return nil, err
	}
	all, _, err := projects(h, base)
	return all, err
}

// projects reads the project's policies on top of base. It returns those that can be read,
// the outermost repository, and what is wrong with the others.
func projects(h *host.Host, base *policy.Policy) (all []*Project, root string, err error) {
	files, root, err := findProject(h.Dir)
	errs := []error{err}
	for _, file := range files {
		data, err := host.ReadFile(file)
		var p *policy.Policy
		if err == nil {
			p, err = policy.Decode(file, data)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, wider := p.OnlyTightens(base)
		all = append(all, &Project{File: file, Asks: wider, data: data, policy: p, host: h})
		base = policy.Merge(base, p)
	}
	return all, root, errors.Join(errs...)
}

// check decides whether the policy may be used.
func (p *Project) check() error {
	if len(p.Asks) == 0 {
		return nil
	}
	known, same, unread := trusted(p.host, p.File, p.SHA256())
	if same {
		return nil
	}
	return &policy.UntrustedError{File: p.File, Changed: known, Unread: unread, Asks: p.Asks}
}

// trustFile returns where the trust in a policy is recorded. It is an error if the home
// directory does not exist, as that of a system account: zsbx must not make it.
func trustFile(h *host.Host, file string) (string, error) {
	state := h.StateHome()
	if state == "" {
		return "", errors.New("neither HOME nor the XDG base directory is set")
	}
	if !filepath.IsAbs(h.Getenv("XDG_STATE_HOME")) {
		if _, err := os.Stat(h.Home); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(file))
	return filepath.Join(state, "zsbx/trust", hex.EncodeToString(sum[:16])+".json"), nil
}

// trusted reports whether file was ever trusted, and whether it was with this
// content. Records that are damaged or belong to another user count as
// missing. unread says why a record can't be looked at or read.
func trusted(h *host.Host, file, hash string) (known, same bool, unread error) {
	name, err := trustFile(h, file)
	if err != nil {
		return false, false, unlessMissing(err)
	}
	st, err := os.Lstat(name)
	if err != nil || !st.Mode().IsRegular() {
		return false, false, unlessMissing(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return false, false, unlessMissing(err)
	}
	var r trustRecord
	owner, ok := st.Sys().(*syscall.Stat_t)
	known = ok && int(owner.Uid) == os.Geteuid() && json.Unmarshal(b, &r) == nil && r.Path == file
	return known, known && r.SHA256 == hash, nil
}

// unlessMissing returns an error unless it says that nothing is there.
func unlessMissing(err error) error {
	if host.Missing(err) {
		return nil
	}
	return err
}

// Trust records that the policy may be used with the content that was read. Only the user
// can read the record.
func (p *Project) Trust() error {
	name, err := trustFile(p.host, p.File)
	if err != nil {
		return err
	}
	b, err := json.Marshal(&trustRecord{Path: p.File, SHA256: p.SHA256(), Time: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	var root *os.Root
	err = os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		root, err = os.OpenRoot(filepath.Dir(name))
	}
	if err == nil {
		defer root.Close()
		err = Replace(root, filepath.Base(name), bytes.NewReader(append(b, '\n')), 0o600, false)
	}
	if err != nil {
		return fmt.Errorf("making the trust store: %w", err)
	}
	return nil
}

// Replace writes a file below root completely or not at all. It writes a new file and
// renames it, so that readers get the old content or the new. It follows no link of that
// name. With fresh it is an error if the file exists. The file has mode less the umask.
func Replace(root *os.Root, name string, from io.Reader, mode fs.FileMode, fresh bool) error {
	aside := name + "." + strconv.FormatUint(rand.Uint64(), 36)
	f, err := root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer root.Remove(aside) // gone when it was renamed
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	switch {
	case err != nil:
		return err
	case fresh:
		return root.Link(aside, name)
	}
	return root.Rename(aside, name)
}

// findProject finds the project's policies, the outermost first: every
// .zsbx.toml from dir up to the root of the outermost repository around it, and
// that root. All of them count, so that a file or a repository that a command
// makes further down can't undo those above. Outside of repositories only dir
// counts. Directories in which everybody makes files are skipped, except dir.
func findProject(dir string) (files []string, root string, err error) {
	count := 0
	for d := dir; ; d = filepath.Dir(d) {
		if d == dir || !slices.Contains(SharedDirs(), d) {
			file := filepath.Join(d, resolve.ProjectFile)
			switch _, err := os.Lstat(file); {
			case err == nil:
				files = append(files, file)
			case !errors.Is(err, fs.ErrNotExist):
				return nil, "", &policy.Error{Code: policy.CodePath, Msg: "looking for a project policy", Err: err,
					Hint: "-C /tmp"}
			}
			if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil || !host.Missing(err) {
				root = d
				count = len(files)
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

// SharedDirs returns the directories for everybody's temporary files.
func SharedDirs() []string {
	return []string{"/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp"}
}

// CheckVariables refuses variables with which zsbx would make its own files through a link
// that a command may have put there, or below something that is not a directory. The
// latter is allowed for TMPDIR, since temporary files have another place.
func CheckVariables(h *host.Host) error {
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR"} {
		v := h.Getenv(name)
		if !filepath.IsAbs(v) {
			continue
		}
		if _, err := os.Stat(v + "/."); errors.Is(err, syscall.ENOTDIR) && name != "TMPDIR" {
			return &policy.Error{Code: policy.CodePath, Hint: "unset " + name,
				Msg: fmt.Sprintf("%s: %s is not a directory", name, v)}
		}
		p := h.Way(filepath.Clean(v))
		if link := h.PlantedLink(p.Path, p.Links); link != "" {
			return &policy.Error{
				Code: policy.CodePath, Hint: "export " + name + "=" + shell.Quote(p.Path),
				Msg: fmt.Sprintf("%s: the link %s, which a command may have put there, leads to %s",
					name, link, p.Path),
			}
		}
	}
	return nil
}
