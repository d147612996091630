package resolve

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestOwnCache checks that the variables of programs that others start lead to a cache of the
// working directory, or nowhere if there can be none.
func TestOwnCache(t *testing.T) {
	node, err := policy.Preset("node")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(h host.Host, layers ...*policy.Policy) *Resolved {
		t.Helper()
		r, err := Policy(policy.Merge(append([]*policy.Policy{node}, layers...)...), h)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	value := func(r *Resolved, name string) string {
		for _, e := range r.Env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v
			}
		}
		return ""
	}
	h := hosttest.Disk(t, "npm_config_cache=/shared/npm")
	hosttest.Mkdirs(&h, t, "a", "b")
	h.Dir = filepath.Join(h.Home, "a")
	r := resolve(h)
	if !slices.ContainsFunc(r.Create, func(p Path) bool { return p.Path == r.Cache }) || !host.Within(r.Cache, h.Home+"/.cache/zsbx-caches") {
		t.Errorf("cache %q, to be made: %v", r.Cache, r.Create)
	}
	if got := value(r, "npm_config_cache"); got != r.Cache+"/npm" {
		t.Errorf("npm_config_cache=%s", got)
	}
	if !slices.Contains(r.CacheLinks, policy.CacheEntry{Name: "npm/_cacache", To: "/shared/npm/_cacache", Copy: false}) {
		t.Errorf("links %v", r.CacheLinks)
	}
	h.Dir = filepath.Join(h.Home, "b")
	if other := resolve(h); other.Cache == r.Cache {
		t.Errorf("two projects have %s", r.Cache)
	}

	// A user's setting counts, and moves what is shared.
	user := &policy.Policy{Env: policy.Env{Set: []policy.Named{{Name: "npm_config_cache", Value: h.Dir + "/c", Origin: policy.Origin{Source: "--env"}}}}}
	r = resolve(h, user)
	if got := value(r, "npm_config_cache"); got != h.Dir+"/c" || !slices.Contains(r.CacheLinks, policy.CacheEntry{Name: "npm/_cacache", To: h.Dir + "/c/_cacache", Copy: false}) {
		t.Errorf("npm_config_cache=%s, links %v", got, r.CacheLinks)
	}

	// No place for it, and places where no preset may write.
	for _, env := range []string{"XDG_CACHE_HOME=/etc", "XDG_CACHE_HOME=" + h.Home + "/.ssh"} {
		h.Env = []string{env}
		if r := resolve(h); value(r, "npm_config_cache") != "" && r.access(r.Cache)&policy.Write != 0 {
			t.Errorf("%s: %s", env, r.Cache)
		}
	}
	h.Home, h.Env = "", nil
	if r := resolve(h); r.Cache != "" || value(r, "npm_config_cache") != "" || len(r.CacheLinks) != 0 {
		t.Errorf("without a home: %q, %v", r.Cache, r.Env)
	}
}

// TestAgentsCache checks that a coding agent has its own cache, in a place of secrets, which no
// tool's preset and no rule for the home directory opens.
func TestAgentsCache(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, "p", ".cache/zsbx-agents/x")
	h.Dir = filepath.Join(h.Home, "p")
	caches := make(map[string]bool)
	all := []string{"amp", "claude", "codex", "copilot", "cursor", "gemini", "goose", "opencode", "pi", "qwen"}
	for _, agent := range append([]string{"node"}, all...) {
		var layers []*policy.Policy
		for _, name := range []string{"node", agent} {
			p, err := policy.Preset(name)
			if err != nil {
				t.Fatal(err)
			}
			layers = append(layers, p)
		}
		r, err := Policy(policy.Merge(layers...), h)
		if err != nil {
			t.Fatal(err)
		}
		if caches[r.Cache] || host.Within(r.Cache, h.Home+"/.cache/zsbx-agents") == (agent == "node") {
			t.Errorf("%s: %s", agent, r.Cache)
		}
		if !slices.ContainsFunc(r.Create, func(p Path) bool { return p.Path == r.Cache }) {
			t.Errorf("%s: %s is not made: %v", agent, r.Cache, r.Create)
		}
		caches[r.Cache] = true
	}
	h.Env = []string{"npm_config_cache=" + h.Home + "/.cache/zsbx-agents/x"}
	node, _ := policy.Preset("node")
	wide := &policy.Policy{}
	wide.FS.Rules = []policy.Rule{{Path: "~", Access: policy.Read, Origin: policy.Origin{Source: "--ro"}}}
	for _, p := range []*policy.Policy{node, wide} {
		r, err := Policy(p, h)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Allowed(h.Home+"/.cache/zsbx-agents/x", policy.Read); v.Allowed {
			t.Errorf("an agent's directory is readable: %s", v.Reason)
		}
	}
}

// TestToolsHaveNoCache checks that the readable part of a preset sets nothing.
func TestToolsHaveNoCache(t *testing.T) {
	p, err := policy.Preset("jvm:tools")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Env.Set)+len(p.FS.Cache) != 0 {
		t.Errorf("%v %v", p.Env.Set, p.FS.Cache)
	}
}
