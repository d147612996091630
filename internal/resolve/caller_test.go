package resolve

import (
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestWithoutJobServer: words about a job server go, with a -j that would have no limit then. What
// comes after " -- " is variables.
func TestWithoutJobServer(t *testing.T) {
	open := func(fifo string) bool { return fifo == "/open" }
	for _, tt := range []struct{ value, want string }{
		{"", ""},
		{"kw", "kw"},
		{" -j4", " -j4"},
		{" -j", " -j"},
		{"w -j4 --jobserver-auth=3,4", "w -j4"},
		{" -j4 --jobserver-auth=3,4 -- A=--jobserver-auth=3,4", " -j4 -- A=--jobserver-auth=3,4"},
		{" -j4 -- A=--jobserver-auth=3,4", " -j4 -- A=--jobserver-auth=3,4"},
		{" --jobserver-fds=3,4 -j", ""},
		{"-j --jobserver-fds=8,9 --jobserver-auth=8,9", ""},
		{" -j8 --jobserver-auth=fifo:/tmp/GMfifo1", " -j8"},
		{" -j8 --jobserver-auth=fifo:/open", " -j8 --jobserver-auth=fifo:/open"},
		{" -j8 --jobserver-auth=fifo:/open --jobserver-auth=3,4", " -j8 --jobserver-auth=fifo:/open"},
		{" --jobserver-authority=3,4", " --jobserver-authority=3,4"},
	} {
		if got := withoutJobServer(tt.value, open); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.value, got, tt.want)
		}
	}
}

// TestLogicalDir: PWD is kept only if it names the working directory by links that the command sees.
func TestLogicalDir(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, "real/sub", "other")
	for link, to := range map[string]string{"link": "real", "loop": "loop", "away": "other", "self": "/proc/self/cwd"} {
		if err := os.Symlink(to, h.Home+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	h.Dir = h.Home + "/real/sub"
	for _, tt := range []struct{ pwd, want string }{
		{h.Dir, h.Dir},
		{h.Home + "/link/sub", h.Home + "/link/sub"},
		{h.Home + "/link/sub/", h.Dir},
		{h.Home + "/link/../link/sub", h.Dir},
		{h.Home + "/away/sub", h.Dir},
		{h.Home + "/loop/sub", h.Dir},
		{h.Home + "/self", h.Dir},
		{"link/sub", h.Dir},
		{"", h.Dir},
		{h.Home + "/none", h.Dir},
	} {
		h.Env = []string{"PWD=" + tt.pwd}
		r, err := Policy(&policy.Policy{}, h)
		if err != nil {
			t.Fatal(err)
		}
		rs := &resolver{r: r, host: &view{Host: h}}
		if got := rs.logicalDir(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.pwd, got, tt.want)
		}
	}
}
