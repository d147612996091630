package mounts

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// Copy puts copies in place of a directory's files, which belong to the
// command's user.
type Copy struct {
	Dir   string
	Files []copiedFile
}

// copiedFile is one of them.
type copiedFile struct{ Name, Text string }

// sshConfigDir is what distributions configure ssh(1) by.
const sshConfigDir = "/etc/ssh/ssh_config.d"

// The bounds of what is copied.
const (
	maxSSHFiles = 32
	maxSSHSize  = 64 << 10 // bytes of one file, with what it includes
)

// SshCopies are the files of sshConfigDir, for use in a user namespace: there
// they seem to belong to nobody, and ssh(1) refuses to start over included
// files that belong to neither root nor its user. What they include in turn is
// put in their text for the same reason.
func SshCopies(r *policy.Resolved, host *policy.Host) []Copy {
	inPolicy := slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return t.Access&policy.Read != 0 && policy.Within(sshConfigDir, t.Path)
	})
	if !inPolicy || host.ReadFile == nil {
		return nil
	}
	entries, err := host.ReadDir(sshConfigDir)
	if err != nil {
		return nil
	}
	c := Copy{Dir: sshConfigDir}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".conf") {
			continue
		}
		text, ok := sshText(host, path.Join(sshConfigDir, e.Name()), 0)
		if !ok || len(c.Files) == maxSSHFiles {
			return nil
		}
		c.Files = append(c.Files, copiedFile{e.Name(), text})
	}
	if len(c.Files) == 0 {
		return nil
	}
	return []Copy{c}
}

// sshText is the text of a configuration file with the files that its Include
// lines name by absolute paths in the place of these lines.
func sshText(host *policy.Host, file string, depth int) (string, bool) {
	const deepest = 4
	if depth > deepest {
		return "", false
	}
	real, st, err := host.RealPath(file)
	if err != nil || !st.Mode.IsRegular() {
		return "", false
	}
	data, err := host.ReadFile(real)
	if err != nil || len(data) > maxSSHSize {
		return "", false
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 2 || !strings.EqualFold(f[0], "Include") || !path.IsAbs(f[1]) || strings.ContainsAny(f[1], "*?[\"") {
			b.WriteString(line)
			continue
		}
		// A file that is missing is no error to ssh.
		if text, ok := sshText(host, f[1], depth+1); ok {
			b.WriteString(text + "\n")
		}
	}
	return b.String(), b.Len() <= maxSSHSize
}
