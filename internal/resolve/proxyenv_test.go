package resolve

import (
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
)

// TestEnvByProxy: the variables that name a session's proxy. What the policy names in full stays, and
// Java's options are added to.
func TestEnvByProxy(t *testing.T) {
	h := hosttest.Table(nil)
	h.Env = append(h.Env, "GIT_SSH_COMMAND=mine", "http_proxy=outer", "JAVA_TOOL_OPTIONS=-Dx=y")
	at := Proxy{Port: 4711, User: "zsbx", Password: "PW", Connect: "/opt/my 100%/zsbx"}
	const (
		proxy = "http://zsbx:PW@127.0.0.1:4711"
		socks = "socks5h://zsbx:PW@127.0.0.1:4711"
		not   = "localhost,127.0.0.1,::1"
		java  = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=4711 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=4711"
		ssh   = `ssh -o 'ProxyCommand='\''/opt/my 100%%/zsbx'\'' connect %h %p'`
	)
	for _, c := range []struct {
		name, toml string
		zsbx       string
		want       map[string]string
	}{
		{"usual", "", at.Connect, map[string]string{
			"http_proxy": proxy, "https_proxy": proxy, "all_proxy": socks, "no_proxy": not,
			"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": socks, "NO_PROXY": not,
			"NODE_USE_ENV_PROXY": "1", "CARGO_HTTP_PROXY": proxy, "GIT_SSH_COMMAND": ssh, "JAVA_TOOL_OPTIONS": java,
		}},
		{"zsbx can't be executed", "", "", map[string]string{"GIT_SSH_COMMAND": "", "https_proxy": proxy}},
		{"passed on", "env.allow = ['JAVA_*', 'GIT_*']", at.Connect, map[string]string{
			"JAVA_TOOL_OPTIONS": java, "GIT_SSH_COMMAND": ssh,
		}},
		{"inherited", "env.mode = 'inherit'", at.Connect, map[string]string{
			"JAVA_TOOL_OPTIONS": "-Dx=y " + java, "GIT_SSH_COMMAND": ssh, "http_proxy": proxy,
		}},
		{"named", "env.allow = ['JAVA_TOOL_OPTIONS', 'http_proxy']\nenv.set.GIT_SSH_COMMAND = 'ssh -v'", at.Connect, map[string]string{
			"JAVA_TOOL_OPTIONS": "", "GIT_SSH_COMMAND": "ssh -v", "http_proxy": "outer", "https_proxy": proxy,
		}},
		{"set", "env.set.JAVA_TOOL_OPTIONS = '-Da=b'", at.Connect, map[string]string{"JAVA_TOOL_OPTIONS": "-Da=b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustResolve(t, mustTOML(t, "net.hosts = ['x.example']\n"+c.toml), h)
			before := slices.Clone(r.Env)
			by := at
			by.Connect = c.zsbx
			got := r.EnvByProxy(r.Env, by)
			if !slices.Equal(r.Env, before) {
				t.Error("it changed what it was given")
			}
			for name, want := range c.want {
				if value := valueOf(got, name); value != want {
					t.Errorf("%s is %q, want %q", name, value, want)
				}
			}
		})
	}
}

// valueOf returns the value of a variable, or "".
func valueOf(env []string, name string) string {
	for _, e := range env {
		value, ok := strings.CutPrefix(e, name+"=")
		if ok {
			return value
		}
	}
	return ""
}
