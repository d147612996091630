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
	left := nestedModules
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(" "+line, " #")
		for command := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";&|", r) }) {
			words := strings.FieldsFunc(command, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`$(){}<>", r) })
			for i, w := range words {
				unnamed, ok := direnvReads(w)
				if !ok || w == "." && i > 0 && words[i-1] != "then" && words[i-1] != "do" { // find . -name x
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

// direnvReads reports whether a word of an .envrc has direnv read the files that are
// named after it, and gives those that it reads unnamed (direnv-stdlib(1)).
func direnvReads(word string) (unnamed []string, reads bool) {
	switch word {
	case "source", ".", "source_env", "source_env_if_exists":
		return nil, true
	case "dotenv", "dotenv_if_exists":
		return []string{".env"}, true
	case "flake":
		return []string{"flake.nix", "flake.lock"}, true
	case "nix":
		return []string{"shell.nix"}, true
	case "devenv":
		return []string{"devenv.nix", "devenv.yaml", "devenv.lock"}, true
	}
	return nil, false
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
		c.watchOnly(p)
	}
}
