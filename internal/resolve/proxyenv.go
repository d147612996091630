package resolve

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// Proxy is a proxy of zsbx's on this machine, for one session.
type Proxy struct {
	Port     uint16
	User     string
	Password string
	Connect  string // zsbx, which ssh(1) executes to reach the proxy; "" if it can't
}

// proxyHost is the address of every such proxy.
const proxyHost = "127.0.0.1"

// url returns the proxy as variables name it.
func (p *Proxy) url(scheme string) string {
	u := url.URL{
		Scheme: scheme,
		User:   url.UserPassword(p.User, p.Password),
		Host:   net.JoinHostPort(proxyHost, strconv.Itoa(int(p.Port))),
	}
	return u.String()
}

// variables returns the variables by which programs find the proxy, but for Java's.
func (p *Proxy) variables() (all []policy.Named) {
	add := func(name, value string) { all = append(all, policy.Named{Name: name, Value: value}) }
	byHTTP := p.url("http")
	for _, v := range []policy.Named{
		{Name: "http_proxy", Value: byHTTP},
		{Name: "https_proxy", Value: byHTTP},
		{Name: "all_proxy", Value: p.url("socks5h")},
		{Name: "no_proxy", Value: "localhost,127.0.0.1,::1"},
	} {
		add(v.Name, v.Value)
		add(strings.ToUpper(v.Name), v.Value)
	}
	add("NODE_USE_ENV_PROXY", "1")
	add("CARGO_HTTP_PROXY", byHTTP)
	if p.Connect != "" {
		percent := strings.ReplaceAll(shell.Quote(p.Connect), "%", "%%") // ssh_config(5)
		add("GIT_SSH_COMMAND", "ssh -o "+shell.Quote("ProxyCommand="+percent+" connect %h %p"))
	}
	return all
}

// java returns the options that make Java's own clients use the proxy. They can't have the password:
// Java takes none from options, and shows them on stderr.
func (p *Proxy) java() string {
	const options = "-Dhttp.proxyHost=%s -Dhttp.proxyPort=%d -Dhttps.proxyHost=%[1]s -Dhttps.proxyPort=%[2]d"
	return fmt.Sprintf(options, proxyHost, p.Port)
}

// EnvByProxy returns an environment of the command with the variables by which programs find a proxy.
// A variable that the policy names in full stays.
func (r *Resolved) EnvByProxy(env []string, p Proxy) []string {
	out := slices.Clone(env)
	for _, v := range p.variables() {
		out = r.withVariable(out, v)
	}
	options := p.java()
	i := slices.IndexFunc(out, func(e string) bool { return strings.HasPrefix(e, javaOptions+"=") })
	if i >= 0 {
		_, old, _ := strings.Cut(out[i], "=")
		options = strings.TrimSpace(old + " " + options)
	}
	out = r.withVariable(out, policy.Named{Name: javaOptions, Value: options})
	slices.SortFunc(out, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	})
	return out
}

// withVariable returns an environment with a variable, unless the policy names it in full.
func (r *Resolved) withVariable(env []string, v policy.Named) []string {
	inSet := func(n policy.Named) bool { return n.Name == v.Name }
	inAllow := func(n policy.Named) bool { return n.Value == v.Name }
	if slices.ContainsFunc(r.env.Set, inSet) || slices.ContainsFunc(r.env.Allow, inAllow) {
		return env
	}
	env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, v.Name+"=") })
	return append(env, v.Name+"="+v.Value)
}
