package cmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// policyTOML writes what was resolved as a policy file. With it,
// "zsbx run --no-baseline -p FILE" asks for the same paths, network and
// limits on this machine, without baseline, presets and the other policies.
func policyTOML(r *policy.Resolved) string {
	var b strings.Builder
	b.WriteString("[fs]\n")
	for _, list := range []struct {
		key string
		acc policy.Access
	}{
		{"ro", policy.Read}, {"rox", policy.Read | policy.Exec},
		{"rw", policy.Read | policy.Write | policy.Exec}, {"rw_noexec", policy.Read | policy.Write},
	} {
		t := &table{}
		for _, p := range r.Paths {
			if p.Access == list.acc {
				t.row(tomlString(p.Path)+",", "# "+p.Rule.Origin.String())
			}
		}
		tomlList(&b, list.key, t)
	}
	t := &table{}
	for _, d := range r.Deny {
		t.row(tomlString(d.Pattern)+",", "# "+d.Deny.Origin.String())
	}
	tomlList(&b, "deny", t)
	b.WriteString("\n[net]\n")
	fmt.Fprintf(&b, "allow = %t # %s\n", r.Net.Mode == policy.NetOpen, comment(r.Net.From))
	if r.Net.Mode == policy.NetPorts {
		fmt.Fprintf(&b, "connect_tcp = [%s]\nbind_tcp = [%s]\n", portList(r.Net.ConnectTCP), portList(r.Net.BindTCP))
	}
	t = &table{}
	for _, p := range r.Net.Unix {
		t.row(tomlString(p.Path)+",", "# "+comment(p.Rule.Origin))
	}
	tomlList(&b, "unix", t)
	b.WriteString("\n[env]\nmode = \"vars\"\n")
	t = &table{}
	for _, kv := range r.Env {
		name, _, _ := strings.Cut(kv, "=")
		t.row(tomlString(name) + ",")
	}
	tomlList(&b, "allow", t)
	if r.Limits.Timeout > 0 || r.Limits.MaxOutput > 0 {
		b.WriteString("\n[limits]\n")
	}
	if r.Limits.Timeout > 0 {
		fmt.Fprintf(&b, "timeout = %q\n", r.Limits.Timeout)
	}
	if r.Limits.MaxOutput > 0 {
		fmt.Fprintf(&b, "max_output = %q\n", strings.ReplaceAll(strings.TrimSuffix(formatBytes(r.Limits.MaxOutput), " bytes"), " ", ""))
	}
	return b.String()
}

// tomlList writes a list, each element on its line. An empty list is left
// out.
func tomlList(b *strings.Builder, key string, t *table) {
	if len(t.rows) == 0 {
		return
	}
	b.WriteString(key + " = [\n")
	t.write(b)
	b.WriteString("]\n")
}

func comment(o policy.Origin) string { return printable(o.String()) }

func portList(ports []policy.Port) string {
	l := make([]string, len(ports))
	for i, p := range ports {
		l[i] = strconv.Itoa(int(p.Number))
	}
	return strings.Join(l, ", ")
}

// tomlString quotes s as a TOML basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case unprintable(r) || r == '\t':
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
