package resolve

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestResolveNet has one row for each combination of the three settings.
func TestResolveNet(t *testing.T) {
	h := hosttest.Table(nil)
	for _, tt := range []struct{ toml, mode, from, connect, bind string }{
		{"", "open", "default", "", ""},
		{"allow = true", "open", "p.toml:2:9", "", ""},
		{"allow = false", "none", "p.toml:2:9", "", ""},
		{"connect_tcp = [443]", "ports", "p.toml:2:16", "443", ""},
		{"bind_tcp = [80, 81]", "ports", "p.toml:2:13", "", "80 81"},
		{"allow = false\nconnect_tcp = [443]\nbind_tcp = [80]", "ports", "p.toml:3:16", "443", "80"},
		{"allow = true\nconnect_tcp = [443]", "ports", "p.toml:3:16", "443", ""},
		{"connect_tcp = []", "none", "an empty list of ports", "", ""},
		{"allow = true\nconnect_tcp = []\nbind_tcp = [80]", "ports", "p.toml:4:13", "", "80"},
	} {
		n := mustResolve(t, mustTOML(t, "[net]\n"+tt.toml), h).Net
		got := []string{string(n.Mode), n.From.String(), ports(n.ConnectTCP), ports(n.BindTCP)}
		if want := []string{tt.mode, tt.from, tt.connect, tt.bind}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", tt.toml, got, want)
		}
	}
	file := mustTOML(t, "net.allow = true")
	flag := &policy.Policy{Net: policy.Net{ConnectTCP: []policy.Port{{Number: 443, Origin: policy.Origin{Source: "--connect-tcp"}}}}}
	if r := mustResolve(t, policy.Merge(file, flag), h); r.Net.Mode != NetPorts {
		t.Errorf("a flag against a file: %+v", r.Net)
	}
	other := &policy.Policy{Net: policy.Net{ConnectTCP: []policy.Port{{Number: 443, Origin: policy.Origin{Source: "q.toml", Line: 1}}}}}
	_, err := Policy(policy.Merge(file, other), h)
	var e *policy.Error
	if !errors.As(err, &e) || e.Code != policy.CodeContradiction || !strings.Contains(err.Error(), "p.toml:1:13") || e.Hint != "--connect-tcp 443" {
		t.Errorf("a contradiction: %v", err)
	}
	if r := mustResolve(t, policy.Merge(file, other, flag), h); r.Net.Mode != NetPorts {
		t.Errorf("with the hint: %+v", r.Net)
	}
	open := &policy.Policy{Net: policy.Net{Allow: policy.Named{Value: "true", Origin: policy.Origin{Source: "--net"}}}}
	if r := mustResolve(t, policy.Merge(other, open), h); r.Net.Mode != NetOpen || len(r.Net.ConnectTCP) != 0 {
		t.Errorf("--net against a file: %+v", r.Net)
	}
	off := &policy.Policy{Net: policy.Net{Allow: policy.Named{Value: "false", Origin: policy.Origin{Source: "--no-net"}}}}
	if r := mustResolve(t, policy.Merge(file, other, off), h); r.Net.Mode != NetNone || len(r.Net.ConnectTCP) != 0 {
		t.Errorf("with --no-net: %+v", r.Net)
	}
	onLinux := &policy.Policy{Linux: &policy.Policy{Net: policy.Net{ConnectTCP: []policy.Port{{Number: 443, Origin: policy.Origin{Source: "q.toml", Line: 3}}}}}}
	if r := mustResolve(t, policy.Merge(onLinux, off), h); r.Net.Mode != NetNone {
		t.Errorf("with --no-net, against a table for one system: %+v", r.Net)
	}
	closed := &policy.Policy{Net: policy.Net{Allow: policy.Named{Value: "false", Origin: policy.Origin{Source: "r.toml", Line: 1}}}}
	if r := mustResolve(t, policy.Merge(closed, other), h); r.Net.Mode != NetPorts {
		t.Errorf("a file that opens a port of what one before closes: %+v", r.Net)
	}
	if _, err := Policy(&policy.Policy{Net: policy.Net{BindTCP: []policy.Port{{}}}}, h); err == nil {
		t.Error("port 0 is no error")
	}
}

func ports(list []policy.Port) string {
	var s []string
	for _, p := range list {
		s = append(s, fmt.Sprint(p.Number))
	}
	return strings.Join(s, " ")
}

func TestResolveSockets(t *testing.T) {
	h := hosttest.Table(map[string]string{"/run/agent": "socket", "/w/l": "-> /run/agent", "/run/pg": "dir", "/w/file": "file"})
	h.Env = append(h.Env, "SSH_AUTH_SOCK=/w/l")
	r := mustResolve(t, mustTOML(t, `net.unix = ["$SSH_AUTH_SOCK", "/run/pg", { path = "$NOPE", optional = true }, { path = "/gone", optional = true }]`), h)
	if len(r.Net.Unix) != 2 || r.Net.Unix[0].Path != "/run/agent" || r.Net.Unix[0].Mode&fs.ModeSocket == 0 || len(r.Skipped) != 2 {
		t.Errorf("%+v, skipped %+v", r.Net.Unix, r.Skipped)
	}
	if !contains(r.Env, "SSH_AUTH_SOCK=/w/l") {
		t.Errorf("the agent's variable is not passed on: %q", r.Env)
	}
	for _, bad := range []string{"file", "/gone", "$NOPE"} {
		if _, err := Policy(&policy.Policy{Net: policy.Net{Unix: []policy.Named{{Value: bad}}}}, h); err == nil {
			t.Errorf("%s is no error", bad)
		}
	}
}
