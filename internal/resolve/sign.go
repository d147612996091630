package resolve

import (
	"crypto/sha1" //nolint:gosec // GnuPG names a directory by it
	"encoding/base32"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/policy"
)

// --sign opens what git needs to sign commits: the agent's socket, which signs, and public keys.

// sourceSign is the origin of its rules.
const sourceSign = "--sign"

// Sign returns the policy of --sign for the repository of the working directory. It is an error
// if the user's git configuration does not say that commits are signed, or if no agent runs. The
// repository's own is a stranger's: it must not decide which agent is opened.
func Sign(h *host.Host) (*policy.Policy, error) {
	s := signing{
		host:  &view{Host: *h},
		from:  policy.Origin{Source: sourceSign},
		set:   map[string]string{},
		maybe: map[string]maybe{},
	}
	s.configuration()
	if err := s.undecided(); err != nil {
		return nil, err
	}
	if s.set["commit.gpgsign"] != "true" && s.set["tag.gpgsign"] != "true" && s.set["user.signingkey"] == "" {
		return nil, s.fail("git config --global commit.gpgsign true",
			"your git configuration, without the repository's, does not say that commits are signed")
	}
	if s.set["gpg.format"] == "ssh" {
		return s.ssh()
	}
	return s.gpg()
}

// signing is what Sign found out.
type signing struct {
	host *view
	from policy.Origin
	set  map[string]string // settings of git, in lower case; the last one counts

	// maybe has settings in files that count only under a condition that is not known, and which
	// it is, by their names. A setting that certainly comes later takes it out.
	maybe map[string]maybe
}

type maybe struct{ value, file, condition string }

func (s *signing) fail(hint, format string, args ...any) error {
	return &policy.Error{Origin: s.from, Code: policy.CodeRefused, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// configuration reads the user's and the system's files that git reads, the strongest last. A file
// that can't be read has no settings here: git says so itself.
func (s *signing) configuration() {
	h := s.host
	files := []string{"/etc/gitconfig", h.expanded("${XDG_CONFIG_HOME:-~/.config}/git/config"),
		h.expanded("~/.gitconfig")}
	if global := h.Getenv("GIT_CONFIG_GLOBAL"); global != "" {
		files = []string{"/etc/gitconfig", global}
	}
	repo, _ := findRepository(&h.Host, path.Clean(h.Dir)) // for conditions
	const deepest = 5
	for _, file := range files {
		s.read(file, repo.gitDir, "", deepest)
	}
}

// read reads one file and those that it includes, at most depth levels deep. doubt is a condition
// that is not known, under which the file counts, or "".
func (s *signing) read(file, gitDir, doubt string, depth int) {
	if file == "" || depth == 0 || s.host.ReadFile == nil {
		return
	}
	text, err := s.host.ReadFile(file)
	if err != nil {
		return
	}
	settings, _ := gitconfig.Read(string(text))
	for i := range settings {
		line := &settings[i]
		if line.Includes() {
			condition := strings.Trim(line.Sub, `. "`)
			holds, known := s.applies(line.Section, condition, path.Dir(file), gitDir)
			if holds || !known {
				under := doubt
				if !known {
					under = condition
				}
				s.read(s.home(line.Value, path.Dir(file)), gitDir, under, depth-1)
			}
		}
		value := line.Value
		if line.Key == "gpgsign" && (value == "" || value == "yes" || value == "on" || value == "1") {
			value = "true"
		}
		name := line.Section + "." + line.Key
		if doubt != "" {
			s.maybe[name] = maybe{value, file, doubt}
			continue
		}
		s.set[name] = value
		delete(s.maybe, name)
	}
}

// undecided returns an error if it is not known how commits are signed.
func (s *signing) undecided() error {
	for _, name := range []string{"commit.gpgsign", "tag.gpgsign", "gpg.format", "user.signingkey"} {
		m, differs := s.maybe[name]
		if differs && m.value != s.set[name] {
			return s.fail("git config --show-origin --get "+name,
				"it is not known which %s counts, since %s sets it if %q holds, which zsbx can't tell",
				name, m.file, m.condition)
		}
	}
	return nil
}

// applies reports whether an include in a file of dir counts here, and whether that is known. Of
// conditions only gitdir without wildcards is understood.
func (s *signing) applies(section, condition, dir, gitDir string) (holds, known bool) {
	if section == "include" {
		return true, true
	}
	kind, pattern, _ := strings.Cut(condition, ":")
	switch kind {
	case "gitdir", "gitdir/i":
	case "onbranch", "hasconfig":
		return false, false
	default:
		return false, true // git ignores what it does not know, too
	}
	if gitDir == "" {
		return false, true
	}
	if strings.ContainsAny(pattern, `*?[\`) {
		return false, false
	}
	for _, here := range []string{gitDir, s.host.Way(gitDir).Path} {
		if s.isAt(here, pattern, dir, kind == "gitdir/i") {
			return true, true
		}
	}
	return false, true
}

// isAt reports whether a git directory is the one that the pattern of a condition names, or, if the
// pattern ends in a slash, is below that. A relative pattern without "./" names a directory anywhere.
func (s *signing) isAt(gitDir, pattern, dir string, fold bool) bool {
	lower := func(p string) string {
		if fold {
			return strings.ToLower(p)
		}
		return p
	}
	gitDir = lower(gitDir)
	name, below := strings.CutSuffix(pattern, "/")
	if !path.IsAbs(pattern) && !strings.HasPrefix(pattern, "~/") && !strings.HasPrefix(pattern, "./") {
		name = lower("/" + name)
		if below {
			return strings.Contains(gitDir, name+"/")
		}
		return strings.HasSuffix(gitDir, name)
	}
	place := s.home(pattern, dir)
	for _, at := range []string{place, s.host.Way(place).Path} {
		at = lower(strings.TrimSuffix(at, "/"))
		if below && strings.HasPrefix(gitDir, at+"/") || !below && gitDir == at {
			return true
		}
	}
	return false
}

// home returns a path of git's configuration, which may begin with "~/" or be relative to dir.
func (s *signing) home(name, dir string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return path.Join(s.host.Home, rest)
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// ssh opens the agent and the public key that git names.
func (s *signing) ssh() (*policy.Policy, error) {
	p := &policy.Policy{}
	sock := s.host.Getenv("SSH_AUTH_SOCK")
	if !s.isSocket(sock) {
		return nil, s.fail(`eval "$(ssh-agent)" && ssh-add`,
			"commits are signed by SSH, but SSH_AUTH_SOCK names no agent's socket")
	}
	p.Net.Unix = []policy.Named{{Value: syntax.Literal(sock), Origin: s.from}}
	key := s.set["user.signingkey"]
	if key == "" || strings.HasPrefix(key, "key::") || strings.HasPrefix(key, "ssh-") ||
		strings.HasPrefix(key, "ecdsa-") {
		return p, nil // the key itself, or the agent's first one
	}
	file := s.home(key, s.host.Dir)
	if !strings.HasSuffix(file, ".pub") {
		file += ".pub"
	}
	if why := notPublic(&s.host.Host, file); why != "" {
		return nil, s.fail("git config user.signingkey", "user.signingkey: %s %s", file, why)
	}
	p.FS.Rules = []policy.Rule{{Path: syntax.Literal(file), Access: policy.Read, Origin: s.from}}
	return p, nil
}

// notPublic returns why a file is no public key of SSH, or "".
func notPublic(h *host.Host, file string) string {
	text, err := h.ReadFile(file)
	if err != nil {
		return "can't be read"
	}
	kind, _, _ := strings.Cut(string(text), " ")
	for _, start := range []string{"ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"} {
		if strings.HasPrefix(kind, start) && strings.Count(strings.TrimSpace(string(text)), "\n") == 0 {
			return ""
		}
	}
	return "is no public key"
}

// gpg opens the agent and GnuPG's directory, without the private keys.
func (s *signing) gpg() (*policy.Policy, error) {
	h := s.host
	dir := h.Home + "/.gnupg"
	moved := h.Getenv("GNUPGHOME")
	if moved != "" {
		dir = path.Clean(moved)
	}
	sock := ""
	for _, place := range gpgSockets(dir, dir == h.Home+"/.gnupg", os.Getuid()) {
		if s.isSocket(place) {
			sock = place
			break
		}
	}
	if sock == "" {
		return nil, s.fail("gpgconf --launch gpg-agent",
			"commits are signed by GnuPG, but its agent does not run: there is no socket S.gpg-agent")
	}
	p := &policy.Policy{}
	p.Net.Unix = []policy.Named{{Value: syntax.Literal(sock), Origin: s.from}}
	p.FS.Rules = []policy.Rule{{Path: syntax.Literal(dir), Access: policy.Read, Origin: s.from}}
	for _, name := range []string{"private-keys-v1.d", "secring.gpg", "openpgp-revocs.d"} {
		p.FS.Deny = append(p.FS.Deny, policy.Named{Value: syntax.Literal(path.Join(dir, name)), Origin: s.from})
	}
	if moved != "" {
		p.Env.Allow = []policy.Named{{Value: "GNUPGHOME", Origin: s.from}}
	}
	return p, nil
}

// gpgSockets returns where the agent's socket may be, as gpgconf --list-dirs says: below
// /run/user if there is such a directory for the user, and else in GnuPG's own directory. usual
// says that this is the default one.
func gpgSockets(dir string, usual bool, uid int) []string {
	run := "/run/user/" + strconv.Itoa(uid) + "/gnupg/"
	if !usual {
		sum := sha1.Sum([]byte(dir))
		run += "d." + base32.NewEncoding("ybndrfg8ejkmcpqxot1uwisza345h769").EncodeToString(sum[:15]) + "/"
	}
	return []string{run + "S.gpg-agent", dir + "/S.gpg-agent"}
}

func (s *signing) isSocket(file string) bool {
	at := s.host.Way(file)
	return path.IsAbs(file) && at.Presence == host.Present && at.Stat.Mode&fs.ModeSocket != 0
}

// signing refuses --sign where a wider rule makes what it opens writable: GnuPG's settings there
// name programs that run outside. It looks at a public key again, now at the very file that is
// opened, by its inode: its name may have led to another one before.
func (rs *resolver) signing() {
	for i := range rs.r.Paths {
		p := &rs.r.Paths[i]
		if p.Rule.Origin.Source != sourceSign {
			continue
		}
		if rs.userAccess(p.Path)&policy.Write != 0 {
			rs.fail(p.Rule.Origin, policy.CodeContradiction, "",
				fmt.Sprintf("%s would be writable by a wider rule: name the project instead", p.Path))
			continue
		}
		if !p.Mode.IsRegular() {
			continue
		}
		why := notPublic(&rs.host.Host, p.Path)
		if at := rs.host.Look(p.Path); at.Presence != host.Present || at.Stat.ID != p.ID {
			why = "has just been replaced"
		}
		if why != "" {
			rs.fail(p.Rule.Origin, policy.CodeRefused, "", p.Path+" "+why)
		}
	}
}
