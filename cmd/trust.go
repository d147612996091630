package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// A project policy is a stranger's file. It is used when the user has said
// so, by zsbx check --trust, for exactly that content at exactly that place,
// or when it takes away and gives nothing.

// trustRecord is what the trust store keeps for one project policy.
type trustRecord struct {
	Path   string    `json:"path"`   // canonical
	SHA256 string    `json:"sha256"` // of the content, hexadecimal
	Time   time.Time `json:"time"`
}

// longestPolicyFile bounds what is read of a project policy, in bytes.
const longestPolicyFile = 1 << 20

// projectFile is a project policy as it was read: what is hashed is what is
// decoded.
type projectFile struct {
	file   string
	data   []byte
	policy *policy.Policy
	wider  []policy.Wider // what it asks for on top of what comes before it
}

// readProject reads a project policy that is to be put on top of base.
func readProject(file string, base *policy.Policy) (*projectFile, error) {
	data, err := readPolicyFile(file)
	if err != nil {
		return nil, err
	}
	p, err := policy.DecodeTOML(file, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	_, wider := p.OnlyTightens(base)
	return &projectFile{file, data, p, wider}, nil
}

// projectPolicy reads the project policy in file and decides whether it may
// be used on top of base.
func (o *policyFlags) projectPolicy(a *app, file string, base *policy.Policy) (*policy.Policy, error) {
	p, err := readProject(file, base)
	if err != nil {
		return nil, err
	}
	if len(p.wider) == 0 {
		return p.policy, nil
	}
	known, same := a.trusted(file, p.data)
	if same {
		return p.policy, nil
	}
	f := &failure{code: codeUntrusted, status: exitFailed, hint: o.trustCommand()}
	f.err = fmt.Errorf("%s: the project policy is not trusted, and it allows more than it takes away, at %s", file, listOrigins(p.wider))
	if known {
		f.err = fmt.Errorf("%s: the project policy has changed since it was trusted", file)
	}
	return nil, f
}

// trustCommand is what to type to see what the project's policies ask for.
func (o *policyFlags) trustCommand() string {
	if o.chdir != "" {
		return "zsbx check -C " + shell.Quote(o.chdir) + " --trust"
	}
	return "zsbx check --trust"
}

// listOrigins names the first few of a list of places.
func listOrigins(all []policy.Wider) string {
	const most = 3
	var l []string
	for _, w := range all[:min(most, len(all))] {
		l = append(l, fmt.Sprintf("%d:%d", w.Origin.Line, w.Origin.Column))
	}
	if len(all) > most {
		l = append(l, "...")
	}
	return strings.Join(l, ", ")
}

// readPolicyFile reads a whole regular file of bounded size. It never blocks
// on a FIFO.
func readPolicyFile(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: file, Err: errors.New("is not a regular file")}
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, longestPolicyFile+1))
	if err == nil && len(data) > longestPolicyFile {
		err = &fs.PathError{Op: "read", Path: file, Err: errors.New("is larger than 1 MiB")}
	}
	return data, err
}

// trustFile is where the trust store keeps the record of a project policy.
func (a *app) trustFile(file string) (string, error) {
	state := a.stateHome()
	if state == "" {
		return "", fmt.Errorf("the trust store: %w", errNoHome)
	}
	sum := sha256.Sum256([]byte(file))
	return filepath.Join(state, "zsbx", "trust", hex.EncodeToString(sum[:16])+".json"), nil
}

// trusted reports whether file was ever trusted, and whether it was with this
// content. Records that can't be read or belong to another user count as
// missing.
func (a *app) trusted(file string, data []byte) (known, same bool) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return false, false
	}
	name, err := a.trustFile(real)
	if err != nil {
		return false, false
	}
	st, err := os.Lstat(name)
	if err != nil || !st.Mode().IsRegular() || !ownedByMe(st) {
		return false, false
	}
	b, err := os.ReadFile(name)
	var r trustRecord
	if err != nil || json.Unmarshal(b, &r) != nil || r.Path != real {
		return false, false
	}
	return true, r.SHA256 == contentHash(data)
}

// trust records that the file may be used with the content that was read.
func (a *app) trust(p *projectFile) error {
	real, err := filepath.EvalSymlinks(p.file)
	if err != nil {
		return err
	}
	name, err := a.trustFile(real)
	if err != nil {
		return err
	}
	b, err := json.Marshal(&trustRecord{Path: real, SHA256: contentHash(p.data), Time: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	err = a.homeIsThere()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err != nil {
		return fmt.Errorf("making the trust store: %w", err)
	}
	return writeByRename(name, append(b, '\n'))
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// writeByRename writes a whole file or nothing of it, readable by the user
// alone.
func writeByRename(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if e := f.Sync(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}

// ownedByMe reports whether the file belongs to the user that zsbx runs as.
func ownedByMe(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
