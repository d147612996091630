package supervise

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestServeProxy: a plan by proxy gets one proxy, however often the start is tried, and a plan that is
// made anew gets the same. It is gone once it is closed.
func TestServeProxy(t *testing.T) {
	list, err := policy.Decode("p.toml", []byte("net.hosts = ['x.example']"))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.Table(nil)
	h.OS = "macos"
	r, err := resolve.Policy(list, h)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(o *Options) *enforce.Plan {
		return enforce.NewPlan(r, enforce.Assume("macos"), &h, enforce.Options{NoProxy: o.noProxy()})
	}
	c := &Command{prepared: &prepared{o: &Options{}, warn: func(w Warning) { t.Errorf("%+v", w) }}}
	c.outside = newHostNotes(c.warn, nil)
	for range 2 {
		c.plan = plan(c.o)
		for range 2 {
			if err := c.serveProxy(); err != nil {
				t.Fatal(err)
			}
			port := strconv.Itoa(int(c.proxy.At.Port))
			if c.plan.Seatbelt.Proxy != c.proxy.At.Port || !strings.Contains(strings.Join(c.plan.Env, "\n"), "@127.0.0.1:"+port) {
				t.Error("the plan does not name the proxy")
			}
		}
	}
	to := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(c.proxy.At.Port)))
	conn, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "CONNECT x.example:443 HTTP/1.1\r\n\r\n")
	if got, _ := io.ReadAll(conn); !strings.Contains(string(got), "407") {
		t.Errorf("without a password: %q", got)
	}
	c.proxy.Close(true)
	if conn, err := net.Dial("tcp", to); err == nil {
		conn.Close()
		t.Error("it listens after the session's end")
	}
	for name, o := range map[string]*Options{"--keep": {Keep: true}, "--exec": {InPlace: true}} {
		p := plan(o)
		if err := p.Err(nil, false); p.ByProxy() || err == nil || !strings.Contains(err.Error(), o.noProxy()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
