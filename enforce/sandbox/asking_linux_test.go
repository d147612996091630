package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/testkit/internet"
	"github.com/zsbx/zsbx/policy"
)

// askingVariable has a shell script that the test binary runs, and answers for.
const askingVariable = "ZSBX_TEST_ASKING"

// asking runs a script with a network by name, prints what it is asked about hosts, and exits.
func asking(script string) {
	mine, err := policy.Decode("mine", []byte(`
net.hosts = ["b.example", "metadata.example"]
net.deny_hosts = ["b.example"]
fs.rw = ["."]`))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	answers := map[string]sandbox.HostAnswer{
		"a.example":    sandbox.AllowHost,
		"four.example": sandbox.AllowHost,
		"corp.example": sandbox.AllowHost,
		"in10.example": sandbox.AllowPrivateHost,
		"203.0.113.80": sandbox.AllowHost,
		"10.0.0.1":     sandbox.AllowHost,
	}
	result, err := sandbox.Run(context.Background(), policy.Merge(policy.Baseline("linux"), mine), sandbox.Options{
		Args: []string{"sh", "-c", script}, Stdout: os.Stdout, Stderr: os.Stderr,
		Warn: func(w sandbox.Warning) { fmt.Println(w.Text, w.Gaps) },
		Host: func(r sandbox.HostRequest) sandbox.HostAnswer {
			program, _, _ := strings.Cut(r.Program, ", pid ")
			fmt.Printf("asked: %s %d %s\n", r.Host, r.Port, program)
			if r.Host == "four.example" {
				time.Sleep(3 * time.Second)
			}
			return answers[r.Host]
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	os.Exit(result.ExitCode())
}

// TestAskHost: the caller is asked once about each host and port that no rule decides about. Its answer
// holds for the session. It is not asked about what a denial refuses, and a private address needs
// its own answer.
func TestAskHost(t *testing.T) {
	for _, p := range []string{"curl", "perl"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	place(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := internet.Options{Dir: t.TempDir()}
	perl := `perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("%:80") or exit 1; print $s "GET / HTTP/1.0\r\nHost: %\r\n\r\n"; print <$s>'`
	blocks := func(host string) string { return strings.ReplaceAll(perl, "%", host) }
	const own = `perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or exit 1; ` +
		`IO::Socket::INET->new($l->sockhost . ":" . $l->sockport) or exit 1; print time, "\n"'`
	for _, c := range []struct {
		name, script string
		status       int
		want         []string
		asked        int
	}{
		{"allowed", "curl -sSk https://a.example/ && curl -sSk https://a.example/", 0,
			[]string{"asked: a.example 443 curl", "page of a.example"}, 1},
		{"blocks", blocks("a.example"), 0, []string{"asked: a.example 80 perl", "page of a.example"}, 1},
		{"another port", "curl -sSk https://a.example/; curl -sS http://a.example/", 0,
			[]string{"asked: a.example 443 curl", "asked: a.example 80 curl"}, 2},
		{"refused", "curl -sSk https://evil.example/ && exit; curl -sSk https://evil.example/ && exit; exit 3", 3,
			[]string{"asked: evil.example 443 curl", "refused: evil.example:443"}, 1},
		{"refused, blocks", blocks("evil.example"), 1, []string{"refused: evil.example:80 (perl"}, 1},
		{"denied", "curl -sSk https://b.example/ && exit; exit 3", 3, []string{"denied by"}, 0},
		{"private", "curl -sSk https://corp.example/ && exit; exit 3", 3,
			[]string{"asked: corp.example 443 curl", "its address 10.38.140.27 is private"}, 1},
		{"private, blocks", blocks("corp.example"), 1, []string{"its address 10.38.140.27 is private"}, 1},
		{"private rule", "curl -sSk https://metadata.example/ && exit; exit 3", 3, []string{"its address 169.254.169.254 is a metadata server's"}, 0},
		{"private allowed", "curl -sSk https://in10.example/", 0, []string{"page of in10.example"}, 1},
		{"numeric", "curl -sS http://203.0.113.80/", 0, []string{"page of"}, 1},
		{"numeric private", "curl -sS http://10.0.0.1/ && exit; exit 3", 3, []string{"asked: 10.0.0.1 80 curl"}, 1},
		{"slow", "curl -sSk https://four.example/ & date +%s >from; sleep 0.5; " + own + " >to; wait $!; test $(($(cat to) - $(cat from))) -lt 3", 0,
			[]string{"page of four.example"}, 1},
		{"interrupted", "timeout -s INT 1 " + strings.ReplaceAll(blocks("four.example"), "exit 1", "die $!") + "; echo ended $?", 0,
			[]string{"ended 124"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, err := internet.Command(o, self)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, askingVariable+"="+c.script)
			var out strings.Builder
			cmd.Stdout = &out
			cmd.Stderr = &out
			_ = cmd.Run()
			if strings.Contains(out.String(), "internet: ") {
				testkit.Lacks(t, testkit.UserNS, out.String())
			}
			if got := cmd.ProcessState.ExitCode(); got != c.status || strings.Count(out.String(), "asked: ") != c.asked {
				t.Errorf("status %d: %s", got, &out)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q: %s", want, &out)
				}
			}
		})
	}
}
