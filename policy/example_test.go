package policy_test

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/zsbx/zsbx/policy"
)

// host is a small machine, so that the examples have the same output everywhere. Real programs use
// ThisHost.
func host() policy.Host {
	files := map[string]fs.FileMode{
		"/": fs.ModeDir, "/usr": fs.ModeDir, "/src": fs.ModeDir, "/src/app": fs.ModeDir, "/src/app/main.go": 0, "/home": fs.ModeDir, "/home/me": fs.ModeDir,
		"/src/app/cache": fs.ModeSymlink, "/var": fs.ModeDir, "/var/cache": fs.ModeDir,
	}
	return policy.Host{
		OS: "linux", Dir: "/src/app", Home: "/home/me", Env: []string{"PATH=/usr/bin", "HOME=/home/me", "GITHUB_TOKEN=secret"},
		Lstat: func(name string) (policy.Stat, error) {
			mode, ok := files[name]
			if !ok {
				return policy.Stat{}, fs.ErrNotExist
			}
			return policy.Stat{Mode: mode}, nil
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

	r, err := policy.Merge(file, flags).Resolve(host())
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
	fmt.Println(r.Connect(80).Reason)
	// Output:
	// rox /usr policy.toml:3:8
	// rw /src/app policy.toml:4:7
	// ro /var/cache --ro
	// [HOME=/home/me PATH=/usr/bin PWD=/src/app]
	// /src/app/main.go is allowed by "rw ." (policy.toml:4:7)
	// /src/app/sub/.env is denied by "**/.env" (policy.toml:5:9)
	// only listed TCP ports may be used to connect (policy.toml:8:16), not 80
}

// All errors are found at once, each with its place.
func ExampleDecode() {
	_, err := policy.Decode("policy.toml", []byte(`
[fs]
read = ["/etc"]
[net]
connect_tcp = [443, 70000]
`))
	fmt.Println(err)
	// Output:
	// policy.toml:3:1: unknown key "read" in [fs]: the keys are ro, rox, rw, rw_noexec, deny, home, system
	// policy.toml:5:21: port 70000 is not between 1 and 65535
}

// A symbolic link may lead out of what was written.
func ExamplePolicy_Resolve_link() {
	p := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: "cache", Access: policy.Read | policy.Write}}}}
	r, err := p.Resolve(host())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Paths[0].Written, r.Paths[0].Path, !policy.Within(r.Paths[0].Path, r.Paths[0].Written))
	// Output: /src/app/cache /var/cache true
}

func ExamplePolicy_EncodeTOML() {
	p := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: ".", Access: policy.Read, Origin: policy.Origin{Source: "--ro"}}}}}
	r, err := p.Resolve(host())
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
