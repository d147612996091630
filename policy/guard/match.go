package guard

import (
	"path"
	"slices"
	"strings"
)

// vitalPaths are what a machine or a user cannot do without, besides the root,
// the home directory and those above it.
const vitalPaths = " /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /srv /sys /usr /usr/bin /usr/lib /usr/local /var /var/lib " +
	"/Users /System /Library /Applications /Volumes /private /private/etc /private/var "

// has reports whether a command has the words of an entry after its name, in
// their order: what it has, and which word is to blame, the one that stands for
// {vital} or {device}, or the name. An option that comes first in the entry
// stands before the first operand: what comes later is a script's.
func (c *checker) has(words []word, entry []string) (blamed word, what string, ok bool) {
	blamed, what = words[0], base(words[0])
	args, operand := words[1:], false
	for _, want := range entry {
		option := want[0] == '-'
		i := slices.IndexFunc(args, func(a word) bool { return c.fits(want, a.text) })
		if i < 0 || option && !operand && slices.ContainsFunc(args[:i], func(a word) bool { return !isOption(a.text) }) {
			return blamed, "", false
		}
		if strings.Contains(want, "{") {
			blamed = args[i]
		}
		if strings.ContainsAny(want, "{*?[") {
			want = args[i].text
		}
		what += " " + want
		args, operand = args[i+1:], operand || !option
	}
	return blamed, what, true
}

// fits compares a word with one of an entry. -c is found in -ec, too.
func (c *checker) fits(want, text string) bool {
	if before, kind, ok := strings.Cut(want, "{"); ok {
		text, ok = strings.CutPrefix(text, before)
		return ok && (kind == "vital}" && c.vital(text) || kind == "device}" && isDevice(text))
	}
	if want[0] != '-' {
		return !isOption(text) && (want == "*" || glob(want, text))
	}
	short := len(want) == 2 && isOption(text) && text[1] != '-'
	return glob(want, text) || short && strings.Contains(text, want[1:]) || strings.HasPrefix(text, want+"=")
}

// absolute is a path as the command will take it, lexically; "" when that is
// not known.
func (c *checker) absolute(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = c.home + p[1:]
	}
	if !strings.HasPrefix(p, "/") {
		if c.cwd == "" {
			return ""
		}
		p = c.cwd + "/" + p
	}
	return path.Clean(p)
}

// vital reports whether a path is one that must not be lost, or all that is in
// one.
func (c *checker) vital(text string) bool {
	if text == "" {
		return false
	}
	p := c.absolute(text)
	for strings.Trim(path.Base(p), "*?.[!]") == "" && p != "/" && p != "" {
		p = path.Dir(p)
	}
	return p == "/" || p != "" && (p == c.home || strings.HasPrefix(c.home, p+"/")) || strings.Contains(vitalPaths, " "+p+" ")
}

// isDevice tells a device that keeps what is written from those that do not.
func isDevice(p string) bool {
	name, ok := strings.CutPrefix(path.Clean(p), "/dev/")
	for _, harmless := range []string{"null", "zero", "full", "random", "urandom", "tty*", "ptmx", "console", "std*"} {
		ok = ok && !glob(harmless, name)
	}
	return ok && (!strings.Contains(name, "/") || strings.HasPrefix(name, "disk/") || strings.HasPrefix(name, "mapper/"))
}

func glob(pattern, s string) bool { ok, _ := path.Match(pattern, s); return ok }

func base(w word) string { return w.text[strings.LastIndexByte(w.text, '/')+1:] }

func isOption(s string) bool { return len(s) > 1 && s[0] == '-' && s != "--" }

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "rbash", "fish"}, name)
}
