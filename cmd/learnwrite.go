package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/learn"
)

// save adds what was learnt to the project's policy, shows what changes, and asks
// whether the file is trusted.
func (l *learner) save() error {
	file := filepath.Join(l.host.Dir, policy.ProjectFile)
	old, err := l.projectText()
	if err != nil {
		return err
	}
	if !bytes.Equal(old, l.old) || (old == nil) != (l.old == nil) {
		return errors.Join(l.print(), coded(codePolicy, fmt.Errorf("%s has changed while the command ran: nothing is written, look at it first", file)))
	}
	text, err := policy.Amend(file, old, learn.Policy(l.accepted, l.present))
	if errors.Is(err, policy.ErrAmend) {
		return errors.Join(l.print(), coded(codePolicy, fmt.Errorf("%s: %w: add the lines by hand", file, err)))
	}
	if err != nil {
		return err
	}
	if old == nil { // a new file has the comments too
		text = append(text, learn.Comments(l.extra, l.present)...)
	}
	if bytes.Equal(old, text) {
		return nil
	}
	if err := l.a.printText(string(diff.Diff(policy.ProjectFile, old, policy.ProjectFile, text))); err != nil {
		return err
	}
	if err := writeProject(l.host.Dir, text, old == nil); err != nil {
		return coded(codePolicy, err)
	}
	return l.trust(file, text)
}

// projectText is the project's policy in the working directory, nil for none.
func (o *learnFlags) projectText() ([]byte, error) {
	h, err := o.thisHost()
	if err != nil {
		return nil, err
	}
	text, err := policy.ReadFile(filepath.Join(h.Dir, policy.ProjectFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, coded(codePolicy, err)
}

// trust asks whether the policy that was just written is trusted. Where nobody can be
// asked, what to type is said.
func (l *learner) trust(file string, text []byte) error {
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	all, err := compose.Projects(l.host)
	if err != nil {
		return l.composeErr(err)
	}
	for _, p := range all {
		if p.File != file || p.SHA256() != hash || p.Trusted() || len(p.Asks) == 0 {
			continue
		}
		l.a.warnOfWriters(file)
		if l.terminal {
			if yes, err := askTerminal("trust "+printable(file)+" as it is now?", func(io.Writer) {}); err == nil && yes {
				return p.Trust()
			}
		}
		l.a.say.hint("%s=%s", l.trustCommand(), hash)
	}
	return nil
}

// writeProject writes the project's policy at once or not at all. It follows no link,
// and with fresh it never replaces a file.
func writeProject(dir string, text []byte, fresh bool) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	mode := fs.FileMode(0o666) // less the umask
	st, err := root.Lstat(policy.ProjectFile)
	switch {
	case err == nil && !st.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: nothing is written", filepath.Join(dir, policy.ProjectFile))
	case err == nil:
		mode = st.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	name := policy.ProjectFile + "." + strconv.FormatUint(rand.Uint64(), 36)
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer root.Remove(name) // gone when it was renamed
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if fresh {
		return root.Link(name, policy.ProjectFile)
	}
	return root.Rename(name, policy.ProjectFile)
}
