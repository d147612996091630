package compose

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// UserPolicy reads the user's policy and returns its file, "" without a home directory.
// The policy is nil if there is none, or if another user's directory keeps this user out:
// the home directory is that user's then.
func UserPolicy(h *host.Host) (file string, p *policy.Policy, err error) {
	if h.ConfigHome() == "" {
		return "", nil, nil
	}
	file = filepath.Join(h.ConfigHome(), "zsbx/policy.toml")
	p, err = policy.DecodeFile(file)
	switch {
	case host.Missing(err): // HOME=/dev/null of daemons
		return file, nil, nil
	case !errors.Is(err, fs.ErrPermission):
		return file, p, err
	}
	closed, at := closedAt(h, file)
	if at.Stat.UID == h.UID {
		return file, nil, &policy.Error{Code: policy.CodeFile, Err: err, Hint: "chmod u+rwX " + shell.Quote(closed)}
	}
	if at.Stat.Mode.IsRegular() {
		return file, nil, err
	}
	return file, nil, nil
}

// closedAt returns what keeps this user from reading a file: the file, or the innermost
// directory above it that can be looked at. A command may have closed the user's own.
func closedAt(h *host.Host, file string) (closed string, at host.Found) {
	to := h.Way(file)
	closed = to.Path
	at = to.Found
	for at.Presence != host.Present && closed != "/" {
		closed = filepath.Dir(closed)
		at = h.Look(closed)
	}
	return closed, at
}
