package hosts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/egress/names"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestRead: what this machine says of names and proxies.
func TestRead(t *testing.T) {
	files := map[string]string{
		"/etc/hosts":       "# x\n127.0.0.1 localhost\n10.1.2.3\ta.example b # c\nnonsense x\n::1 ip6\n10.1.2.4\n",
		"/etc/resolv.conf": "search a.example\nnameserver 10.0.0.1\ndomain b.example\nsearch c.example d.example\n",
	}
	h := &host.Host{
		Env: []string{"HTTP_PROXY=http://never:1", "HTTPS_PROXY=http://upper:1", "https_proxy=http://lower:1", "no_proxy="},
		ReadFile: func(name string) ([]byte, error) {
			return []byte(files[name]), nil
		},
	}
	c, err := Read(&resolve.Hosts{NXDomain: true}, h)
	if err != nil {
		t.Fatal(err)
	}
	want := []names.Entry{
		{Addr: netip.MustParseAddr("127.0.0.1"), Names: []string{"localhost"}},
		{Addr: netip.MustParseAddr("10.1.2.3"), Names: []string{"a.example", "b"}},
		{Addr: netip.MustParseAddr("::1"), Names: []string{"ip6"}},
	}
	if !reflect.DeepEqual(c.Entries, want) {
		t.Errorf("entries: %v", c.Entries)
	}
	if !reflect.DeepEqual(c.Search, []string{"c.example", "d.example"}) || !c.NXDomain {
		t.Errorf("search list %q, NXDomain %v", c.Search, c.NXDomain)
	}
	got := proxyVariables(h.Env)
	if got != (relay.Variables{HTTPSProxy: "http://lower:1"}) {
		t.Errorf("proxies: %+v", got)
	}
	h.Env = []string{"all_proxy=socks5://x:1"}
	if _, err := Read(&resolve.Hosts{}, h); err == nil {
		t.Error("a proxy that is not known is no error")
	}
}

// TestErrno: errors of connect(2) are those that the kernel would have.
func TestErrno(t *testing.T) {
	refusal := func(why rule.Reason, err error) error {
		return &relay.Refusal{Verdict: rule.Verdict{Reason: why}, Err: err}
	}
	for _, tt := range []struct {
		err  error
		want syscall.Errno
	}{
		{refusal(rule.Upstream, fmt.Errorf("dial: %w", syscall.EHOSTUNREACH)), syscall.EHOSTUNREACH},
		{refusal(rule.Upstream, errors.New("the proxy says 403")), syscall.ECONNREFUSED},
		{refusal(rule.Upstream, context.DeadlineExceeded), syscall.ETIMEDOUT},
		{refusal(rule.Limit, nil), syscall.EAGAIN},
		{refusal(rule.Host, nil), syscall.EACCES},
		{refusal(rule.Private, nil), syscall.EACCES},
	} {
		if got := Errno(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

// TestAsked: a command that thinks of many names has no more than some of them asked about, and what was
// asked has its answer afterwards, too.
func TestAsked(t *testing.T) {
	var asked atomic.Int32
	ask := func(Request) Answer {
		asked.Add(1)
		return Allow
	}
	r := newRules(&Config{Rules: rule.NewSet(nil, nil), Asker: ask})
	allowed := 0
	for range 2 {
		for n := range mostAsked + 50 {
			target := relay.Target{Ask: rule.Target(fmt.Sprintf("n%d.example", n), 443)}
			v := r.Decide(target.Ask)
			if v.Allowed() || r.allows(t.Context(), &target, &v) {
				allowed++
			}
		}
	}
	if allowed != 2*mostAsked || asked.Load() != mostAsked {
		t.Errorf("%d allowed, %d asked", allowed, asked.Load())
	}
}
