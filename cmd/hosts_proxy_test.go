package cmd

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// proxied is what reaches hosts by a session's proxy, as on macOS, with servers on this machine. Nothing
// confines its programs.
type proxied struct {
	plan   *enforce.Plan
	zsbx   string
	mu     sync.Mutex
	events []string
	banner []string // what the server of port ssh got first
	plain  string   // ports of servers: HTTP
	secure string   // TLS
	ssh    string   // speaks first
}

// newProxied starts servers, and a proxy by the plan for macOS of a policy that allows a.example and
// ssh.example.
func newProxied(t *testing.T) *proxied {
	p := &proxied{zsbx: testkit.NeedProgram(t, "zsbx")}
	files := t.TempDir()
	handler := http.NewServeMux()
	handler.HandleFunc("/hello", func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "hello from "+q.Host) })
	handler.Handle("/", http.FileServer(http.Dir(files)))
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ssh, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ssh.Close() })
	go p.greet(ssh)
	_, p.plain, _ = net.SplitHostPort(plain.Listener.Addr().String())
	_, p.secure, _ = net.SplitHostPort(secure.Listener.Addr().String())
	_, p.ssh, _ = net.SplitHostPort(ssh.Addr().String())
	p.repository(t, files)
	p.plan = p.newPlan(t)
	front, err := p.plan.Listen(func(e egress.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, string(e.Kind)+" "+e.Verdict.Line(e.Who))
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- front.Serve() }()
	t.Cleanup(func() {
		front.Close(true)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	p.plan.ForProxy(front.At, p.zsbx)
	return p
}

// newPlan makes the plan, on a machine whose hosts(5) has the names.
func (p *proxied) newPlan(t *testing.T) *enforce.Plan {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	h.OS = "macos"
	h.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "JAVA_TOOL_OPTIONS=-Dx=y"}
	read := h.ReadFile
	h.ReadFile = func(name string) ([]byte, error) {
		if name == "/etc/hosts" {
			return []byte("127.0.0.1 a.example ssh.example evil.example\n"), nil
		}
		return read(name)
	}
	const rules = `env.allow = ["JAVA_*"]
net.hosts = [
  { host = "a.example:%s/http", private = true },
  { host = "a.example:%s/tls", private = true },
  { host = "ssh.example:%s/tcp", private = true },
]
fs.rox = [%q]
`
	list, err := policy.Decode("p.toml", []byte(fmt.Sprintf(rules, p.plain, p.secure, p.ssh, p.zsbx)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := resolve.Policy(list, h)
	if err != nil {
		t.Fatal(err)
	}
	plan := enforce.NewPlan(r, enforce.Assume("macos"), &h, enforce.Options{})
	if !plan.ByProxy() || plan.Err(nil, false) != nil {
		t.Fatal(plan.Err(nil, false))
	}
	return plan
}

// repository makes one that git can clone from files alone.
func (p *proxied) repository(t *testing.T, dir string) {
	git := testkit.NeedProgram(t, "git")
	const script = `"$0" init -q --bare r.git && cd r.git && tree=$("$0" write-tree) &&
"$0" update-ref HEAD $("$0" -c user.name=u -c user.email=u@x commit-tree -m first $tree) && "$0" update-server-info`
	c := exec.Command("sh", "-c", script, git)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}

// greet speaks first, as ssh(1) expects, and notes what comes.
func (p *proxied) greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			io.WriteString(c, "SSH-2.0-here\r\n")
			got := make([]byte, 8)
			io.ReadFull(c, got)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.banner = append(p.banner, string(got))
		}()
	}
}

// run runs a shell script with the variables of the command.
func (p *proxied) run(t *testing.T, script string) (out string, ok bool) {
	t.Helper()
	c := exec.Command("sh", "-c", script)
	c.Dir = t.TempDir()
	c.Env = append(slices.Clone(p.plan.Env), "GIT_CONFIG_NOSYSTEM=1")
	text, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(text), err == nil
}

// TestProxyClients: what programs reach by the session's proxy with the variables that zsbx sets, and
// what they are told.
func TestProxyClients(t *testing.T) {
	p := newProxied(t)
	testkit.NeedProgram(t, "curl")
	testkit.NeedProgram(t, "ssh")
	const wrong = `http_proxy=$(echo "$http_proxy" | sed 's/zsbx:[^@]*@/zsbx:wrong@/') && https_proxy=$http_proxy && all_proxy=socks5h${http_proxy#http} && `
	ports := strings.NewReplacer("PLAIN", p.plain, "SECURE", p.secure, "RAW", p.ssh, "ZSBX", p.zsbx)
	for _, c := range []struct {
		name, script, want string
		ok                 bool
	}{
		{"http", "curl -sS http://a.example:PLAIN/hello", "hello from a.example", true},
		{"https", "curl -sSk https://a.example:SECURE/hello", "hello from a.example", true},
		{"socks", "unset http_proxy && curl -sSv http://a.example:PLAIN/hello", "hello from a.example", true},
		{"socks, seen", "unset http_proxy && curl -sSv http://a.example:PLAIN/hello 2>&1 | grep -i socks5", "a.example", true},
		{"git", "git clone -q http://a.example:PLAIN/r.git && git -C r log --format=%s", "first", true},
		{"connect", "ZSBX connect ssh.example RAW <&-", "SSH-2.0-here", true},
		{"connect upper case", "ZSBX connect SSH.Example RAW </dev/null", "SSH-2.0-here", true},
		{"another host", "curl -sS http://evil.example:PLAIN/hello", "zsbx: refused: evil.example:PLAIN: not in [net] hosts; to allow: --allow-host evil.example:PLAIN\n", true},
		{"another host, without the proxy", "curl -sS --noproxy '*' --resolve evil.example:PLAIN:127.0.0.1 http://evil.example:PLAIN/hello", "hello from evil.example", true},
		{"another host, https", "curl -sSk https://evil.example:SECURE/hello", "403", false},
		{"another host, socks", "unset http_proxy && curl -sS http://evil.example:PLAIN/hello", "(2)", false},
		{"another host, connect", "ZSBX connect evil.example RAW </dev/null", "zsbx: error: connecting to evil.example:RAW: the proxy says 403", false},
		{"another name in the tunnel", "curl -sSk --connect-to evil.example:SECURE:a.example:SECURE https://evil.example:SECURE/hello", "curl", false},
		{"wrong password", wrong + "curl -sS -o /dev/null -w '%{http_code}' http://a.example:PLAIN/hello", "407", true},
		{"wrong password, https", wrong + "curl -sSk https://a.example:SECURE/hello", "407", false},
		{"wrong password, socks", wrong + "unset http_proxy && curl -sS http://a.example:PLAIN/hello", "curl", false},
		{"wrong password, connect", wrong + "ZSBX connect ssh.example RAW </dev/null", "the proxy says 407", false},
		{"no proxy", "unset https_proxy HTTPS_PROXY && ZSBX connect ssh.example RAW </dev/null", "https_proxy names no proxy", false},
		{"no host", "ZSBX connect ssh.example", "needs a host and a port", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, ok := p.run(t, ports.Replace(c.script))
			if ok != c.ok || !strings.Contains(out, ports.Replace(c.want)) {
				t.Errorf("%v, want %v: %s", ok, c.ok, out)
			}
		})
	}
	// Git's ssh speaks with the server, which is no real one.
	out, _ := p.run(t, "GIT_SSH_COMMAND=\"$GIT_SSH_COMMAND -o BatchMode=yes\" git ls-remote ssh://u@ssh.example:"+p.ssh+"/r")
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.banner, "SSH-2.0-") {
		t.Errorf("ssh: %q, %s", p.banner, out)
	}
	told := strings.Join(p.events, "\n")
	for _, want := range []string{
		"refused evil.example:" + p.plain,
		"opened",
		`asks for "evil.example"`,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not among the events:\n%s", want, told)
		}
	}
}
