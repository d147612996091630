package enforce

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// Hint is a rule that would allow an act: as a flag of run, and as a line of a
// policy file. The zero value is none.
type Hint struct {
	Flag, Value string // "--rw", "."; Value may be ""
	Table, Key  string // "fs", "rw"; "" where no policy file can say it
	Create      bool   // the directory is missing, and is to be made
}

// String is the flag as a shell takes it, or "".
func (h Hint) String() string {
	if h.Create {
		h.Create = false
		return "--create-missing " + h.String()
	}
	if h.Value == "" {
		return h.Flag
	}
	if rest, ok := strings.CutPrefix(h.Value, "~/"); ok && shell.Quote(rest) == rest { // the shell may expand it as well
		return h.Flag + " " + h.Value
	}
	return h.Flag + " " + shell.Quote(h.Value)
}

// TOML is the line of a policy file, or "".
func (h Hint) TOML() string {
	switch {
	case h.Table == "" || h.Create: // a policy file has no word for it
		return ""
	case h.Table == "net" && h.Key != "unix":
		return fmt.Sprintf("[net] %s = [%s]", h.Key, h.Value)
	}
	return fmt.Sprintf("[%s] %s = [%s]", h.Table, h.Key, policy.QuoteTOML(h.Value))
}

// Data is the same as a table of tables, for JSON; nil for none.
func (h Hint) Data() map[string]map[string][]any {
	var v any = h.Value
	switch {
	case h.Table == "" || h.Create:
		return nil
	case h.Table == "net" && h.Key != "unix":
		v, _ = strconv.Atoi(h.Value)
	}
	return map[string]map[string][]any{h.Table: {h.Key: {v}}}
}

// HintFor is the rule that would give an access to a canonical path, and the
// place of secrets that is the reason why there is none.
func (p *Plan) HintFor(at string, acc policy.Access) (h Hint, secret string) {
	r := p.Policy
	for _, d := range r.Deny {
		if d.Covers(at) {
			return Hint{}, ""
		}
	}
	home := r.Home
	if real, _, ok := r.Look(home); ok && home != "" {
		home = real
	}
	switch {
	case !strings.HasPrefix(at, "/"), at == "/", home != "" && policy.Within(home, at): // all of a home directory is no rule to propose
		return Hint{}, ""
	case acc&policy.Write != 0 && systemDir(at), acc&policy.Exec == 0 && kernelDir(at):
		return Hint{}, ""
	}
	if secret := r.Secret(at); secret != "" {
		return Hint{}, secret
	}
	inside := policy.Within(at, r.Dir)
	switch {
	case acc&policy.Write != 0 && inside && r.Dir != home && r.Dir != "/":
		return Hint{Flag: "--rw", Value: ".", Table: "fs", Key: "rw"}, ""
	case acc&policy.Write != 0 && r.StartedOutside(at) != "": // a hostile command would only have to ask for it
		return Hint{}, ""
	case acc&policy.Write != 0 && sharedTemp(at) && (home == "" || !policy.Within(at, home)) && p.Mounts.PrivateIn(at) == "":
		return Hint{Flag: "--shared-tmp"}, ""
	}
	h = Hint{Flag: "--ro", Value: at, Table: "fs", Key: "ro"}
	switch {
	case acc&policy.Write != 0 && acc&policy.Exec != 0:
		h.Flag, h.Key = "--rw", "rw"
	case acc&policy.Write != 0:
		h.Flag, h.Key = "--rw-noexec", "rw_noexec"
	case acc&policy.Exec != 0:
		h.Flag, h.Key = "--rox", "rox"
	}
	h.Value = p.Policy.Short(at)
	return h, ""
}

// systemDir reports whether a directory is the system's, which a package manager
// changes and no rule.
func systemDir(at string) bool {
	for _, d := range []string{"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run", "/var/lib", "/var/run", "/Library", "/System"} {
		if policy.Within(at, d) {
			return true
		}
	}
	return kernelDir(at)
}

// kernelDir reports whether a path is one by which the kernel is asked or told.
func kernelDir(at string) bool {
	return policy.Within(at, "/proc") || policy.Within(at, "/sys") || at == "/dev" || policy.Within(at, "/dev/shm") || policy.Within(at, "/dev/mqueue")
}

// sharedTemp reports whether a path lies in a temporary directory of all users.
func sharedTemp(at string) bool {
	return policy.Within(at, "/tmp") || policy.Within(at, "/var/tmp")
}

func (p *Plan) socketHint(at string) Hint {
	return Hint{Flag: "--unix", Value: p.Policy.Short(at), Table: "net", Key: "unix"}
}

// portHint is empty where the network was closed by a flag, beside which ports
// can't stand.
func portHint(a *Act, from policy.Origin) Hint {
	if from.Source == "--no-net" {
		return Hint{}
	}
	flag, key := "--connect-tcp", "connect_tcp"
	if a.Op == ActBind {
		flag, key = "--bind-tcp", "bind_tcp"
	}
	return Hint{Flag: flag, Value: strconv.Itoa(int(a.Port)), Table: "net", Key: key}
}
