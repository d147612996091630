package sandbox

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// tokens are what tokens of well-known services begin with.
var tokens = []string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_live_", "xox", "AKIA", "ASIA", "eyJ", "npm_", "pypi-", "AIza", "hf_"}

// users are the options that a user stands behind, with a password.
var users = []string{"-u", "-U", "--user", "--proxy-user"}

// redact copies the first 16 KiB of a command line without what looks like a secret: an
// argument ends with *** where one begins. It can't know every secret.
func redact(argv []string) (out []string, cut bool) {
	left, before := 16<<10, ""
	for _, arg := range argv {
		if left <= 0 {
			return out, true
		}
		if len(arg) > left {
			arg, cut = arg[:left], true
		}
		left -= len(arg) + 1
		arg, before = hide(arg, before)
		out = append(out, arg)
	}
	return out, cut
}

// hide puts *** where in an argument a secret begins: a token, the value of a variable,
// or of what has a name such as password, a password in a URL or behind "-u USER:". It is
// given the word before the argument, and gives its last.
func hide(arg, before string) (hidden, last string) {
	for start := 0; start < len(arg); {
		if i := strings.IndexAny(arg[start:], ": \t\r\n"); i >= 0 && arg[start+i] == ':' && slices.Contains(users, before) {
			return arg[:start+i+1] + "***", "" // USER may be an address
		}
		word, rest := arg[start:], ""
		if i := strings.IndexAny(word, " \t\r\n;|&()<>`\"'$\\{},/?@=:"); i >= 0 {
			word, rest = word[:i], word[i:]
		}
		end, name, option := start+len(word), cmp.Or(word, before), strings.HasPrefix(word, "-")
		switch {
		case strings.HasPrefix(before, "-") && word != "" && !option && policy.SecretName(before),
			len(word) >= 16 && slices.ContainsFunc(tokens, func(t string) bool { return strings.HasPrefix(word, t) }):
			return arg[:start] + "***", ""
		case strings.HasPrefix(rest, "://"):
			url := rest[:strings.IndexAny(rest+" ", " \t\r\n")] // a password may have what ends one: / ? # ,
			if user := url[len("://"):max(strings.LastIndexByte(url, '@'), len("://"))]; strings.Contains(user, ":") || policy.HasURLPassword(arg[start:]) {
				return arg[:end] + "://***", ""
			}
		case strings.HasPrefix(rest, "=") && name != "" && !strings.HasPrefix(name, "-") && name == strings.ToUpper(name),
			rest != "" && strings.Contains("=:", rest[:1]) && (policy.SecretName(name) || strings.EqualFold(name, "pwd")):
			return arg[:end+1] + "***", ""
		}
		start, before = end+1, name
	}
	return arg, before
}
