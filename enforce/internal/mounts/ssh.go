package mounts

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// SSHDir is what distributions configure ssh(1) by.
const SSHDir = "/etc/ssh/ssh_config.d"

// copied is the copy of a file, which belongs to the command's user.
type copied struct{ Name, Text string }

// The bounds of what is copied.
const (
	maxSSHFiles = 32
	maxSSHSize  = 64 << 10 // bytes of one file
)

// SSHCopies are the files of SSHDir, for use in a user namespace: there they seem to
// belong to nobody, and ssh(1) refuses to start over included files that belong to
// neither root nor its user. What they include in turn is left out for the same reason.
func SSHCopies(r *policy.Resolved, host *policy.Host) (out []copied) {
	inPolicy := slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&policy.Read != 0 && policy.Within(SSHDir, t.Path)
	})
	if !inPolicy || host.ReadFile == nil {
		return nil
	}
	entries, _ := host.ReadDir(SSHDir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".conf") {
			continue
		}
		real, _, err := host.RealPath(SSHDir + "/" + e.Name())
		if err != nil {
			return nil
		}
		data, err := host.ReadFile(real)
		if err != nil || len(data) > maxSSHSize || len(out) == maxSSHFiles {
			return nil
		}
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			words := strings.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == '=' || r == '"' })
			if len(words) == 0 || !strings.EqualFold(words[0], "include") {
				b.WriteString(line)
			}
		}
		out = append(out, copied{e.Name(), b.String()})
	}
	return out
}
