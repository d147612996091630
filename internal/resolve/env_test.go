package resolve

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestEnvironment has one column per mode: a variable is kept (+) or dropped (-). Mode vars and the
// globs have their own tests.
func TestEnvironment(t *testing.T) {
	for _, tt := range []struct{ entry, scrubbed, sanitized, inherit string }{
		{"PATH=/bin", "+", "+", "+"},
		{"HOME=/home/u", "+", "+", "+"},
		{"LC_ALL=C", "+", "+", "+"},
		{"XDG_CACHE_HOME=/x", "+", "+", "+"},
		{"XDG_RUNTIME_DIR=/run/user/1", "-", "+", "+"},
		{"CARGO_HOME=/x", "+", "+", "+"},
		{"https_proxy=http://proxy:3128", "+", "+", "+"},
		{"HTTPS_PROXY=http://user:pw@proxy:3128", "-", "-", "+"},
		{"MY_SETTING=1", "-", "+", "+"},
		{"EMPTY=", "-", "+", "+"},
		{"LD_PRELOAD=/x.so", "-", "-", "+"},
		{"LD_LIBRARY_PATH=/x", "-", "-", "+"},
		{"DYLD_INSERT_LIBRARIES=/x", "-", "-", "+"},
		{"BASH_ENV=/x", "-", "-", "+"},
		{"ENV=/x", "-", "-", "+"},
		{"BASH_FUNC_ls%%=() { evil; }", "-", "-", "+"},
		{"NODE_OPTIONS=-r x", "-", "-", "+"},
		{"PYTHONSTARTUP=/x", "-", "-", "+"},
		{"PYTHONPATH=/x", "-", "-", "+"},
		{"PERL5OPT=-M", "-", "-", "+"},
		{"PERL5LIB=/x", "-", "-", "+"},
		{"RUBYOPT=-r", "-", "-", "+"},
		{"GIT_SSH_COMMAND=x", "-", "-", "+"},
		{"GIT_EXTERNAL_DIFF=x", "-", "-", "+"},
		{"GIT_CONFIG_KEY_0=core.pager", "-", "-", "+"},
		{"PROMPT_COMMAND=x", "-", "-", "+"},
		{"JAVA_TOOL_OPTIONS=x", "-", "-", "+"},
		{"_JAVA_OPTIONS=x", "-", "-", "+"},
		{"GCONV_PATH=/x", "-", "-", "+"},
		{"GITHUB_TOKEN=x", "-", "-", "+"},
		{"npm_config_token=x", "-", "-", "+"},
		{"NPM_CONFIG__AUTH=x", "-", "-", "+"},
		{"npm_config_//registry.npmjs.org/:_authToken=x", "-", "-", "+"},
		{"CLIENT_SECRET=x", "-", "-", "+"},
		{"API_KEY=x", "-", "-", "+"},
		{"OPENAI_API_KEY=x", "-", "-", "+"},
		{"SSH_KEY_PATH=x", "-", "-", "+"},
		{"PGPASSWORD=x", "-", "-", "+"},
		{"DB_PASS=x", "-", "-", "+"},
		{"AWS_PROFILE=x", "-", "-", "+"},
		{"GOOGLE_APPLICATION_CREDENTIALS=/x", "-", "-", "+"},
		{"DATABASE_URL=x", "-", "-", "+"},
		{"REDIS=redis://:pw@host/0", "-", "-", "+"},
		{"REMOTE=https://ghp_abc@github.com/x", "-", "-", "+"},
		{"REMOTE=ssh://git@github.com/x", "-", "+", "+"},
		{"MAIL=me@example.org", "-", "+", "+"},
		{"KEYBOARD=de", "-", "+", "+"},
		{"MONKEY=1", "-", "+", "+"},
		{"TOKENIZERS_PARALLELISM=1", "-", "+", "+"},
		{"GIT_AUTHOR_NAME=x", "-", "+", "+"},
		{"SSH_AUTH_SOCK=/run/agent", "-", "-", "+"},
		{"DBUS_SESSION_BUS_ADDRESS=x", "-", "+", "+"},
		{"TMUX=/tmp/x", "-", "+", "+"},
		{"DISPLAY=:0", "-", "+", "+"},
		{"WAYLAND_DISPLAY=x", "-", "+", "+"},
		{"VSCODE_IPC_HOOK_CLI=x", "-", "+", "+"},
		{"NVIM=x", "-", "+", "+"},
	} {
		for mode, want := range map[string]string{policy.EnvScrubbed: tt.scrubbed, policy.EnvSanitized: tt.sanitized, policy.EnvInherit: tt.inherit, "": tt.scrubbed} {
			h := hosttest.Table(nil)
			h.Env = []string{tt.entry}
			r := mustResolve(t, &policy.Policy{Env: policy.Env{Mode: policy.Named{Value: mode}}}, h)
			name, _, _ := strings.Cut(tt.entry, "=")
			got := "-"
			if contains(r.Env, tt.entry) {
				got = "+"
			}
			if got != want || contains(r.EnvDrop, name) == (got == "+") {
				t.Errorf("%s %s: %s, want %s; dropped %q", mode, tt.entry, got, want, r.EnvDrop)
			}
		}
	}
}

func TestEnvironmentNames(t *testing.T) {
	h := hosttest.Table(nil)
	h.Env = []string{
		"PATH=/first", "PATH=/second", "=C:=x", "NOEQUALS", "", "LD_PRELOAD=/x", "CARGO_TERM_COLOR=always", "CARGO_REGISTRY_TOKEN=s",
		"MY_TOKEN=t", "GONE=1", "Z=1", "HOME=/home/u",
	}
	resolve := func(toml string) *Resolved { return mustResolve(t, mustTOML(t, toml), h) }

	r := resolve("")
	if want := []string{"HOME=/home/u", "PATH=/first", "PWD=/w"}; !reflect.DeepEqual(r.Env, want) {
		t.Errorf("the first of two, and no malformed entries: %q", r.Env)
	}
	if want := []string{"CARGO_REGISTRY_TOKEN", "CARGO_TERM_COLOR", "GONE", "LD_PRELOAD", "MY_TOKEN", "Z"}; !reflect.DeepEqual(r.EnvDrop, want) {
		t.Errorf("dropped %q", r.EnvDrop)
	}

	r = resolve(`env.allow = ["CARGO_*", "*_TOKEN", "LD_*", "[XYZ]"]`)
	for _, want := range []string{"CARGO_TERM_COLOR=always", "Z=1"} {
		if !contains(r.Env, want) {
			t.Errorf("a glob does not let %s through: %q", want, r.Env)
		}
	}
	if !slices.Contains(r.EnvDrop, "CARGO_REGISTRY_TOKEN") || !slices.Contains(r.EnvDrop, "LD_PRELOAD") || !slices.Contains(r.EnvDrop, "MY_TOKEN") {
		t.Errorf("a glob lets secrets or loader variables through: dropped %q", r.EnvDrop)
	}

	r = resolve(`env.allow = ["MY_TOKEN", "LD_PRELOAD"]`)
	if !contains(r.Env, "MY_TOKEN=t") {
		t.Errorf("a secret that is named does not pass: %q", r.Env)
	}
	if slices.Contains(r.Env, "LD_PRELOAD=/x") || len(r.Warnings) != 1 || r.Warnings[0].Origin.Column != 26 || r.Warnings[0].Hint != `--env LD_PRELOAD="$LD_PRELOAD"` {
		t.Errorf("LD_PRELOAD in scrubbed mode: %q, warnings %v", r.Env, r.Warnings)
	}

	r = resolve("env.set = { LD_PRELOAD = '/mine.so', PATH = '/mine', NEW = 'a=b' }")
	if want := []string{"HOME=/home/u", "LD_PRELOAD=/mine.so", "NEW=a=b", "PATH=/mine", "PWD=/w"}; !reflect.DeepEqual(r.Env, want) || slices.Contains(r.EnvDrop, "LD_PRELOAD") {
		t.Errorf("set: %q, dropped %q", r.Env, r.EnvDrop)
	}

	r = resolve("env.mode = 'vars'\nenv.allow = ['HOME', 'LD_PRELOAD', 'CARGO_*']\nenv.set = { A = '1' }")
	if want := []string{"A=1", "CARGO_TERM_COLOR=always", "HOME=/home/u", "LD_PRELOAD=/x"}; !reflect.DeepEqual(r.Env, want) {
		t.Errorf("vars: %q", r.Env)
	}

	for _, bad := range []policy.Env{
		{Mode: policy.Named{Value: "all"}}, {Allow: []policy.Named{{Value: "A B"}}}, {Allow: []policy.Named{{Value: ""}}}, {Set: []policy.Named{{Name: "A=B"}}},
		{Set: []policy.Named{{Name: "A", Value: "x\x00"}}},
	} {
		if _, err := Policy(&policy.Policy{Env: bad}, h); err == nil {
			t.Errorf("%+v is no error", bad)
		}
	}
}

func TestEnvironmentTempDir(t *testing.T) {
	h := hosttest.Table(map[string]string{"/tmp/z": "dir"})
	h.TempDir = "/tmp/z"
	h.Env = []string{"TMPDIR=/tmp", "TEMP=/other", "XDG_RUNTIME_DIR=/run/user/1"}
	for _, mode := range []string{policy.EnvScrubbed, policy.EnvSanitized, policy.EnvInherit, policy.EnvVars} {
		r := mustResolve(t, &policy.Policy{Env: policy.Env{Mode: policy.Named{Value: mode}}}, h)
		for _, want := range []string{"TMPDIR=/tmp/z", "TMP=/tmp/z", "TEMP=/tmp/z", "TMUX_TMPDIR=/tmp/z", "XDG_RUNTIME_DIR=/tmp/z/run", "SCREENDIR=/tmp/z/run"} {
			if !contains(r.Env, want) {
				t.Errorf("%s: no %s in %q", mode, want, r.Env)
			}
		}
	}
	r := mustResolve(t, mustTOML(t, "env.allow = ['TMPDIR']\nenv.set = { TEMP = '/mine' }"), h)
	if !contains(r.Env, "TMPDIR=/tmp") || !contains(r.Env, "TEMP=/mine") || !contains(r.Env, "TMP=/tmp/z") {
		t.Errorf("what is named in full is left alone: %q", r.Env)
	}
}
