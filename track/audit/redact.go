package audit

import "strings"

// mostCommand is how much of a command line is written down, in bytes.
const mostCommand = 16 << 10

// Redact copies a command line, as far as it may be long, without what looks
// like a secret: an argument ends with *** where the value of a variable or of
// an option with a name such as password begins, an Authorization header, a
// password in a URL, or a token as well-known services make them. It looks into
// strings for shells, and it can't know every secret.
func Redact(argv []string) (out []string, cut bool) {
	left, next := mostCommand, false
	for _, arg := range argv {
		if left <= 0 {
			return out, true
		}
		if len(arg) > left {
			arg, cut = arg[:left], true
		}
		left -= len(arg) + 1
		at := 0
		if !next || strings.HasPrefix(arg, "-") {
			at, next = secretAt(arg)
		} else {
			next = false
		}
		if at >= 0 {
			arg = arg[:at] + "***"
		}
		out = append(out, arg)
	}
	return out, cut
}

// secretAt is where in an argument a secret begins, or -1, and whether it is
// the next argument.
func secretAt(arg string) (at int, next bool) {
	const ends = " \t\n\r;|&()<>`"
	for start := 0; start < len(arg); {
		if strings.IndexByte(ends, arg[start]) >= 0 {
			start++
			continue
		}
		end := len(arg)
		if i := strings.IndexAny(arg[start:], ends); i >= 0 {
			end = start + i
		}
		word := strings.TrimLeft(arg[start:end], `"'$\{`)
		from := end - len(word)
		if name, _, ok := strings.Cut(word, "="); ok && (isVariable(name) || secretName(name)) {
			return from + len(name) + 1, false
		}
		if name, value, ok := strings.Cut(word, ":"); ok && secretName(name) && !strings.HasPrefix(value, "//") {
			return from + len(name) + 1, false
		}
		if _, rest, ok := strings.Cut(word, "://"); ok && strings.Contains(rest[:max(strings.LastIndexByte(rest, '@'), 0)], ":") {
			return end - len(rest), false
		}
		if strings.HasPrefix(word, "-") && secretName(word) {
			if end == len(arg) {
				return -1, true
			}
			return end + 1, false
		}
		for _, p := range []string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_live_", "xox", "AKIA", "ASIA", "eyJ", "npm_", "pypi-", "AIza", "hf_"} {
			if i := strings.Index(word, p); i == 0 && len(word) >= 16 || i > 0 && len(word)-i >= 16 && strings.IndexByte(`"'=:@/,`, word[i-1]) >= 0 {
				return from + i, false
			}
		}
		start = end
	}
	return -1, false
}

// isVariable tells a name in capitals, as the environment's are.
func isVariable(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// secretName tells the names of secrets.
func secretName(name string) bool {
	name = strings.ToLower(strings.Trim(name, "-\"'"))
	for _, part := range []string{"passw", "passphrase", "secret", "token", "credential", "authorization", "cookie", "apikey", "api-key", "api_key", "private-key", "access-key"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "pwd" || name == "pass" || name == "key" || name == "auth"
}
