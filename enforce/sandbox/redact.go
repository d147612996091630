package sandbox

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// mostCommand is how much of a command line is written down, in bytes.
const mostCommand = 16 << 10

// tokens are what tokens of well-known services begin with.
var tokens = [...]string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_live_", "xox", "AKIA", "ASIA", "eyJ", "npm_", "pypi-", "AIza", "hf_"}

// redact copies a command line, as far as it may be long, without what looks like a
// secret: an argument ends with *** where one begins. It looks into strings for shells,
// and it can't know every secret.
func redact(argv []string) (out []string, cut bool) {
	left, before := mostCommand, ""
	for _, arg := range argv {
		if left <= 0 {
			return out, true
		}
		if len(arg) > left {
			arg, cut = arg[:left], true
		}
		left -= len(arg) + 1
		at, last := secretAt(arg, before)
		if before = last; at < len(arg) {
			arg = arg[:at] + "***"
		}
		out = append(out, arg)
	}
	return out, cut
}

// secretAt is where in an argument a secret begins, its end for nowhere: the value of a
// variable, or of what has a name such as password, a password in a URL or behind
// "-u USER:", or a token. It is given the word before the argument, and gives its last.
func secretAt(arg, before string) (at int, last string) {
	at = len(arg)
	for end, start := 0, 0; start < len(arg); start = end + 1 {
		end = start + strings.IndexAny(arg[start:]+" ", " \t\n\r;|&()<>`")
		word := strings.TrimLeft(arg[start:end], `"'$\{`)
		from := end - len(word)
		switch user, _, ok := strings.Cut(word, ":"); {
		case word == "":
			continue
		case ok && slices.Contains([]string{"-u", "-U", "--user", "--proxy-user"}, before):
			at = min(at, from+len(user)+1)
		case strings.HasPrefix(before, "-") && word[0] != '-' && !strings.Contains(before, "=") && policy.SecretName(before):
			at = min(at, from)
		case policy.HasURLPassword(word):
			at = min(at, from+strings.Index(word, "://")+len("://"))
		}
		for i := 1; i < len(word) && from+i < at; i++ {
			name, assigns := word[:i], word[i] == '='
			if assigns && name == strings.ToUpper(name) || (assigns || word[i] == ':' && !strings.HasPrefix(word[i:], "://")) && policy.SecretName(name) {
				at = from + i + 1
			}
		}
		for _, token := range tokens {
			if i := strings.Index(word, token); i == 0 && len(word) >= 16 || i > 0 && len(word)-i >= 16 && strings.IndexByte(`"'=:@/,`, word[i-1]) >= 0 {
				at = min(at, from+i)
			}
		}
		before = word
	}
	return at, before
}
