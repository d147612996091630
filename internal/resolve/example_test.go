package resolve_test

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// smallHost is a small machine, so that the examples have the same output everywhere. Real programs use
// ThisHost.
func smallHost() host.Host {
	files := map[string]fs.FileMode{
		"/": fs.ModeDir, "/usr": fs.ModeDir, "/src": fs.ModeDir, "/src/app": fs.ModeDir, "/src/app/main.go": 0, "/home": fs.ModeDir, "/home/me": fs.ModeDir,
		"/src/app/cache": fs.ModeSymlink, "/var": fs.ModeDir, "/var/cache": fs.ModeDir,
	}
	return host.Host{
		OS: "linux", Dir: "/src/app", Home: "/home/me", Env: []string{"PATH=/usr/bin", "HOME=/home/me", "GITHUB_TOKEN=secret"},
		Lstat: func(name string) (host.Stat, error) {
			mode, ok := files[name]
			if !ok {
				return host.Stat{}, fs.ErrNotExist
			}
			return host.Stat{Mode: mode}, nil
		},
		Readlink: func(name string) (string, error) { return "/var/cache", nil },
	}
}

func Example() {
	file, err := policy.Decode("policy.toml", []byte(`
[fs]
rox = ["/usr"]
rw = ["."]
deny = ["**/.env"]

[net]
connect_tcp = [443]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	flags := &policy.Policy{}
	flags.FS.Rules = []policy.Rule{{Path: "cache", Access: policy.Read, Origin: policy.Origin{Source: "--ro"}}}

	r, err := resolve.Policy(policy.Merge(file, flags), smallHost())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range r.Paths {
		fmt.Println(p.Access, p.Path, p.Rule.Origin)
	}
	fmt.Println(r.Env)
	fmt.Println(r.Allowed("main.go", policy.Write).Reason)
	fmt.Println(r.Allowed("sub/.env", policy.Read).Reason)
	fmt.Println(r.Connect("x.example", 80).Reason)
	// Output:
	// rox /usr policy.toml:3:8
	// rw /src/app policy.toml:4:7
	// ro /var/cache --ro
	// [HOME=/home/me PATH=/usr/bin PWD=/src/app]
	// /src/app/main.go is allowed by "rw ." (policy.toml:4:7)
	// /src/app/sub/.env is denied by "**/.env" (policy.toml:5:9)
	// only listed TCP ports may be used to connect (policy.toml:8:16), not 80
}

// A symbolic link may lead out of what was written.
func ExamplePolicy_link() {
	p := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: "cache", Access: policy.Read | policy.Write}}}}
	r, err := resolve.Policy(p, smallHost())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Paths[0].Written, r.Paths[0].Path, !host.Within(r.Paths[0].Path, r.Paths[0].Written))
	// Output: /src/app/cache /var/cache true
}

func ExampleResolved_Policy() {
	p := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: ".", Access: policy.Read, Origin: policy.Origin{Source: "--ro"}}}}}
	r, err := resolve.Policy(p, smallHost())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Policy().EncodeTOML(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [fs]
	// ro = [
	//   "/src/app",  # --ro
	// ]
	//
	// [fs.system]
	// executable = []
	// read_only = []
	// read_write = []
}
