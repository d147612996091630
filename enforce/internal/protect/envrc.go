package protect

import (
	"path"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// envrc has told what an .envrc reads in the project, when it changes: direnv asks its user
// about the .envrc alone, and runs the rest as it is at the next prompt. It is not held,
// since builds write there: a new .venv/bin/activate, a flake.lock. A stranger's may name
// any number of files; some hundred are looked at.
func (c *protector) envrc(top *policy.Listing) {
	if top.Lacks(".envrc") {
		return
	}
	text, err := c.host.ReadFile(path.Join(top.Dir, ".envrc"))
	if err != nil {
		return
	}
	// After these words direnv reads what is named, and what is not (direnv-stdlib(1)).
	readers := map[string][]string{
		"source": nil, ".": nil, "source_env": nil, "source_env_if_exists": nil,
		"dotenv": {".env"}, "dotenv_if_exists": {".env"},
		"flake": {"flake.nix", "flake.lock"}, "nix": {"shell.nix"}, "devenv": {"devenv.nix", "devenv.yaml", "devenv.lock"},
	}
	left := nestedModules
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(" "+line, " #")
		for command := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";&|", r) }) {
			words := strings.FieldsFunc(command, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`$(){}<>", r) })
			for i, w := range words {
				unnamed, reads := readers[w]
				if !reads || w == "." && i > 0 && words[i-1] != "then" && words[i-1] != "do" { // find . -name x
					continue
				}
				for _, name := range append(unnamed, words[i+1:]...) {
					if left--; left >= 0 {
						c.sourced(top.Dir, name)
					}
				}
				break
			}
		}
	}
}

// sourced watches a file that an .envrc reads, or that of the directory that it names.
func (c *protector) sourced(dir, name string) {
	p := path.Join(dir, strings.TrimPrefix(name, "PWD/"))
	if path.IsAbs(name) && c.writable(name) {
		p = path.Clean(name)
	}
	if c.isDir(p) {
		p += "/.envrc"
	}
	if c.writable(p) {
		c.watch(Watched{Path: p})
	}
}
