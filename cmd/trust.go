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

// projectPolicy reads the project policy in file and decides whether it may
// be used on top of base. What is hashed is what is decoded: the file is read
// once.
func (a *app) projectPolicy(file string, base *policy.Policy) (*policy.Policy, error) {
	data, err := readPolicyFile(file)
	if err != nil {
		return nil, err
	}
	p, err := policy.DecodeTOML(file, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	tightens, wider := p.OnlyTightens(base)
	if tightens {
		return p, nil
	}
	known, same := a.trusted(file, data)
	if same {
		return p, nil
	}
	f := &failure{code: codeUntrusted, status: exitFailed, hint: "cat " + quoteArg(file) + " && zsbx check --trust"}
	f.err = fmt.Errorf("%s: the project policy is not trusted, and it allows more than it takes away, at %s", file, listOrigins(wider))
	if known {
		f.err = fmt.Errorf("%s: the project policy has changed since it was trusted", file)
	}
	return nil, f
}

// listOrigins names the first few of a list of places.
func listOrigins(all []policy.Origin) string {
	const most = 3
	var l []string
	for _, o := range all[:min(most, len(all))] {
		l = append(l, fmt.Sprintf("%d:%d", o.Line, o.Column))
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

// trusted tells whether file was ever trusted, and whether it was with this
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

// trust records that file may be used with the content that it has now.
func (a *app) trust(file string) (*trustRecord, error) {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, err
	}
	data, err := readPolicyFile(real)
	if err != nil {
		return nil, err
	}
	if _, err := policy.DecodeTOML(file, bytes.NewReader(data)); err != nil {
		return nil, coded(codePolicy, err)
	}
	name, err := a.trustFile(real)
	if err != nil {
		return nil, err
	}
	r := &trustRecord{Path: real, SHA256: contentHash(data), Time: time.Now().UTC().Truncate(time.Second)}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, fmt.Errorf("making the trust store: %w", err)
	}
	return r, writeByRename(name, append(b, '\n'))
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

// ownedByMe tells whether the file belongs to the user that zsbx runs as.
func ownedByMe(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
