package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/policy"
)

// trustRecord is what the trust store keeps for one project policy.
type trustRecord struct {
	Path   string    `json:"path"`   // canonical, but for the file itself: a link lends no other project's trust
	SHA256 string    `json:"sha256"` // of the content, hexadecimal
	Time   time.Time `json:"time"`
}

// Project is a project's policy as it was read: what is hashed is what is
// decoded.
type Project struct {
	File string
	Asks []policy.Wider // what it asks for on top of what comes before it

	host   *policy.Host
	data   []byte
	policy *policy.Policy
}

// SHA256 is that of the content, hexadecimal.
func (p *Project) SHA256() string { return contentHash(p.data) }

// Trusted reports whether the user has trusted the policy with this content.
func (p *Project) Trusted() bool {
	_, same := trusted(p.host, p.File, p.SHA256())
	return same
}

// Projects reads the project's policies, each on top of those before it. Nothing is
// asked about trust.
func Projects(h *policy.Host) ([]*Project, error) {
	if err := CheckVariables(h); err != nil {
		return nil, err
	}
	files, _, err := findProject(h.Dir)
	if err != nil {
		return nil, err
	}
	base, err := UserPolicy(h)
	if err != nil {
		return nil, err
	}
	var all []*Project
	for _, file := range files {
		p, err := readProject(file, base)
		if err != nil {
			return nil, err
		}
		p.host = h
		all = append(all, p)
		base = policy.Merge(base, p.policy)
	}
	return all, nil
}

// readProject reads a project policy that is to be put on top of base.
func readProject(file string, base *policy.Policy) (*Project, error) {
	data, err := policy.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := policy.DecodeTOML(file, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	_, wider := p.OnlyTightens(base)
	return &Project{File: file, Asks: wider, data: data, policy: p}, nil
}

// projectPolicy reads the project policy in file and decides whether it may
// be used on top of base.
func projectPolicy(h *policy.Host, file string, base *policy.Policy) (*policy.Policy, error) {
	p, err := readProject(file, base)
	if err != nil {
		return nil, err
	}
	if len(p.Asks) == 0 {
		return p.policy, nil
	}
	known, same := trusted(h, file, p.SHA256())
	if same {
		return p.policy, nil
	}
	return nil, &UntrustedError{File: file, Changed: known, Asks: p.Asks}
}

// UntrustedError says that a project's policy asks for something, and that the
// user has not trusted it.
type UntrustedError struct {
	File    string
	Changed bool // it was trusted with another content
	Asks    []policy.Wider
}

func (e *UntrustedError) Error() string {
	if e.Changed {
		return fmt.Sprintf("%s: the project policy has changed since it was trusted", e.File)
	}
	return fmt.Sprintf("%s: the project policy is not trusted, and it allows more than it takes away, at %s", e.File, listOrigins(e.Asks))
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

// trusted reports whether file was ever trusted, and whether it was with this
// content. Records that can't be read or belong to another user count as
// missing.
func trusted(h *policy.Host, file, hash string) (known, same bool) {
	name, err := StateFile(h, "trust", file)
	if err != nil {
		return false, false
	}
	st, err := os.Lstat(name)
	if err != nil || !st.Mode().IsRegular() || !ownedByMe(st) {
		return false, false
	}
	b, err := os.ReadFile(name)
	var r trustRecord
	if err != nil || json.Unmarshal(b, &r) != nil || r.Path != file {
		return false, false
	}
	return true, r.SHA256 == hash
}

// Trust records that the policy may be used with the content that was read.
func (p *Project) Trust() error {
	name, err := StateFile(p.host, "trust", p.File)
	if err != nil {
		return err
	}
	b, err := json.Marshal(&trustRecord{Path: p.File, SHA256: contentHash(p.data), Time: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err = WriteState(name, append(b, '\n')); err != nil {
		err = fmt.Errorf("making the trust store: %w", err)
	}
	return err
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ownedByMe reports whether the file belongs to the user that zsbx runs as.
func ownedByMe(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
