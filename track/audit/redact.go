package audit

import (
	"slices"
	"strings"
)

// mostCommand is how much of a command line is written down, in bytes.
const mostCommand = 16 << 10

// Redact copies a command line, as far as it may be long, without what looks
// like a secret: an argument ends with *** where the value of a variable or of
// an option with a name such as password begins, an Authorization header, a
// password in a URL or behind "-u USER:", or a token as well-known services make
// them. It looks into strings for shells, and it can't know every secret.
func Redact(argv []string) (out []string, cut bool) {
	left, next, before := mostCommand, false, ""
	for _, arg := range argv {
		if left <= 0 {
			return out, true
		}
		if len(arg) > left {
			arg, cut = arg[:left], true
		}
		left -= len(arg) + 1
		at := 0
		if next = next && !strings.HasPrefix(arg, "-"); !next {
			at = secretAt(arg, before)
			next = at == len(arg)+1
		} else {
			next = false
		}
		before = arg
		if at >= 0 && at <= len(arg) {
			arg = arg[:at] + "***"
		}
		out = append(out, arg)
	}
	return out, cut
}

// secretAt is where in an argument a secret begins: -1 for none, and behind the
// end when it is the next argument. It comes after the word before.
func secretAt(arg, before string) int {
	const ends = " \t\n\r;|&()<>`"
	for end := 0; end < len(arg); end++ {
		start := end
		if end += strings.IndexAny(arg[start:]+" ", ends); end == start {
			continue
		}
		word := strings.TrimLeft(arg[start:end], `"'$\{`)
		from := end - len(word)
		user := strings.EqualFold(before, "-u") || before == "--user" || before == "--proxy-user"
		if name, _, ok := strings.Cut(word, ":"); ok && user {
			return from + len(name) + 1
		}
		before = word
		for _, sep := range []string{"=", ":"} {
			name, value, ok := strings.Cut(word, sep)
			variable := sep == "=" && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
			if ok && (variable || secretName(name) && (sep == "=" || !strings.HasPrefix(value, "//"))) {
				return from + len(name) + 1
			}
		}
		if _, rest, ok := strings.Cut(word, "://"); ok && strings.Contains(rest[:max(strings.LastIndexByte(rest, '@'), 0)], ":") {
			return end - len(rest)
		}
		if strings.HasPrefix(word, "-") && secretName(word) {
			return end + 1
		}
		for _, p := range []string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_live_", "xox", "AKIA", "ASIA", "eyJ", "npm_", "pypi-", "AIza", "hf_"} {
			if i := strings.Index(word, p); i == 0 && len(word) >= 16 || i > 0 && len(word)-i >= 16 && strings.IndexByte(`"'=:@/,`, word[i-1]) >= 0 {
				return from + i
			}
		}
	}
	return -1
}

// secretName tells the names of secrets.
func secretName(name string) bool {
	name = strings.ToLower(strings.Trim(name, "-\"'"))
	return slices.Contains([]string{"pwd", "pass", "key", "auth"}, name) || slices.ContainsFunc([]string{"passw", "passphrase", "secret", "token",
		"credential", "authorization", "cookie", "apikey", "api-key", "api_key", "private-key", "access-key"}, func(part string) bool { return strings.Contains(name, part) })
}
