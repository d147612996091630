package imports

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zsbx/zsbx/policy"
)

// landrun reads the first command line of landrun in a shell script.
func (r *reader) landrun(data []byte) error {
	file, err := syntax.NewParser().Parse(strings.NewReader(string(data)), "")
	if err != nil {
		return err
	}
	var call *syntax.CallExpr
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && call == nil {
			if i := slices.IndexFunc(c.Args, func(w *syntax.Word) bool { return strings.HasSuffix("/"+w.Lit(), "/landrun") }); i >= 0 {
				call = &syntax.CallExpr{Args: c.Args[i+1:]}
			}
		}
		return call == nil
	})
	if call == nil {
		return fmt.Errorf("there is no landrun command in it")
	}
	p := r.Policy
	p.FS.System = policy.System{Executable: []policy.Rule{}, ReadOnly: []policy.Rule{}, ReadWrite: []policy.Rule{}}
	p.Env.Mode, p.Env.From = policy.EnvVars, r.origin("--env")
	p.Net.ConnectTCP, p.Net.BindTCP = []policy.Port{}, []policy.Port{}
	r.left("(no baseline)", "landrun opens nothing by itself: run with --no-baseline to have no presets, no files of shells and no private temporary directory either")
	missing := false
	access := map[string]policy.Access{"ro": read, "rox": execute, "rw": write, "rwx": everything}
	for i := 0; i < len(call.Args); i++ {
		flag := r.word(call.Args[i])
		if !strings.HasPrefix(flag, "-") || flag == "--" {
			break
		}
		name, value, given := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if valued := slices.Contains([]string{"ro", "rox", "rw", "rwx", "unix", "bind-tcp", "connect-tcp", "env", "log-level"}, name); valued && !given {
			if i++; i == len(call.Args) {
				return fmt.Errorf("--%s has no value", name)
			}
			value = r.word(call.Args[i])
		}
		switch name {
		case "ignore-missing":
			missing = true
		case "unrestricted-filesystem":
			r.rule("--"+name, "/", everything)
		case "unrestricted-network":
			r.network("--"+name, true)
			p.Net.ConnectTCP, p.Net.BindTCP = nil, nil
		case "env":
			if strings.Contains(value, "${") {
				r.left("--env "+value, "a policy's values are not expanded: pass it with --env")
				continue
			}
			r.variable("--env", strings.ReplaceAll(value, "$$", "$"))
		case "ro", "rox", "rw", "rwx", "unix", "bind-tcp", "connect-tcp":
			for v := range strings.SplitSeq(value, ",") {
				switch a := access[name]; {
				case a != 0:
					r.rule("--"+name, v, a)
				case name == "unix":
					p.Net.Unix = append(p.Net.Unix, policy.Named{Value: v, Origin: r.origin("--unix")})
				case name == "bind-tcp":
					r.port(&p.Net.BindTCP, name, v)
				default:
					r.port(&p.Net.ConnectTCP, name, v)
				}
			}
		default:
			r.leave("--"+name, setting{name, []string{"true"}})
		}
	}
	for i := range p.FS.Rules {
		p.FS.Rules[i].Optional = missing
	}
	return nil
}

func (r *reader) port(list *[]policy.Port, flag, v string) {
	n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 16)
	if err != nil || n == 0 {
		r.fail("--"+flag, "port %q is not between 1 and 65535", v)
	}
	*list = append(*list, policy.Port{Number: uint16(n), Origin: r.origin("--" + flag)})
}

// word is a word as a policy has it: variables stay, $(pwd) is ".".
func (r *reader) word(w *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
			case *syntax.SglQuoted:
				b.WriteString(strings.ReplaceAll(p.Value, "$", "$$"))
			case *syntax.DblQuoted:
				add(p.Parts)
			case *syntax.ParamExp:
				if p.Param != nil && p.Exp == nil && p.Repl == nil && !p.Length && !p.Excl && p.Slice == nil && p.Index == nil {
					b.WriteString("${" + p.Param.Value + "}")
					continue
				}
				r.fail(w.Pos().String(), "what it expands to is not known")
			case *syntax.CmdSubst:
				if call, ok := cmd(p); ok && len(call.Args) == 1 && call.Args[0].Lit() == "pwd" {
					b.WriteString(".")
					continue
				}
				r.fail(w.Pos().String(), "what it expands to is not known")
			default:
				r.fail(w.Pos().String(), "what it expands to is not known")
			}
		}
	}
	add(w.Parts)
	return b.String()
}

func cmd(p *syntax.CmdSubst) (*syntax.CallExpr, bool) {
	if len(p.Stmts) != 1 {
		return nil, false
	}
	call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	return call, ok
}

// firejail reads a profile. What it does not name is readable, and the home
// directory writable, unless it has whitelists.
func (r *reader) firejail(data []byte) error {
	except, home, own := map[string]bool{}, true, map[string]policy.Access{}
	r.rule("(default)", "/", execute)
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		value = strings.TrimSpace(value)
		place := fmt.Sprintf("%d: %s", number, line)
		path, ok := macros(value)
		switch key {
		case "noblacklist", "whitelist", "read-write", "blacklist", "read-only", "noexec", "whitelist-ro", "allow", "noallow", "deny", "nodeny", "blacklist-nolog":
			if !ok {
				r.left(place, "zsbx does not know what the variable in it stands for")
				continue
			}
		}
		switch key {
		case "noblacklist", "nodeny":
			except[path] = true
			own[path] |= everything
		case "whitelist", "allow", "read-write":
			own[path] |= everything
			home = home && (key == "read-write" || !strings.HasPrefix(path, "~"))
		case "whitelist-ro":
			own[path] |= execute
		case "blacklist", "deny", "blacklist-nolog":
			if !except[path] {
				r.deny(place, path)
			}
		case "read-only":
			if a := own[path]; a&policy.Write != 0 {
				own[path] = a &^ policy.Write
			} else if path == "~" {
				home = false
			} else if strings.HasPrefix(path, "~") {
				r.deny(place, path)
				r.left(place, wholly)
			}
		case "noexec":
			if own[path]&policy.Exec == 0 {
				r.left(place, "files can be executed where a rule says so: use rw_noexec for a directory of its own")
			} else {
				own[path] &^= policy.Exec
			}
		case "private":
			home = false
			if value != "" {
				r.left(place, "zsbx puts no other directory in the home directory's place")
			}
		case "net", "protocol":
			if value == "none" || key == "protocol" && !strings.Contains(value, "inet") {
				r.network(place, false)
			} else if key == "net" {
				r.left(place, "zsbx makes no network devices")
			}
		case "env":
			r.variable(place, value)
		case "timeout":
			var h, m, s int
			if _, err := fmt.Sscanf(value, "%d:%d:%d", &h, &m, &s); err != nil {
				r.fail(place, "a time is hh:mm:ss")
			}
			r.Policy.Limits.Timeout, _ = policy.ParseTime(fmt.Sprintf("%dh%dm%ds", h, m, s))
			r.Policy.Limits.TimeoutFrom = r.origin(place)
		default:
			if strings.HasPrefix(key, "?") {
				key = "?"
			}
			r.leave(place, setting{key, []string{value + "."}})
		}
	}
	if home {
		r.rule("(default)", "~", everything)
	}
	for _, path := range slices.Sorted(maps.Keys(own)) {
		if own[path] != 0 {
			r.rule("(whitelist)", path, own[path])
		}
	}
	return nil
}

// macros puts firejail's variables as a policy has them; ok is false for those
// that it can't have.
func macros(path string) (_ string, ok bool) {
	for macro, is := range map[string]string{
		"${HOME}": "~", "${RUNUSER}": "${XDG_RUNTIME_DIR:-/run/user/none}", "${DESKTOP}": "~/Desktop", "${DOCUMENTS}": "~/Documents",
		"${DOWNLOADS}": "~/Downloads", "${MUSIC}": "~/Music", "${PICTURES}": "~/Pictures", "${VIDEOS}": "~/Videos",
	} {
		if rest, found := strings.CutPrefix(path, macro); found {
			return is + rest, true
		}
	}
	return path, !strings.Contains(path, "${")
}
