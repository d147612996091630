package enforce

import (
	"fmt"
	"path"
	"strings"
)

// dataVolume is where the writable volume is mounted. Most of what lies there
// is reached, and named by the kernel, through firmlinks.
const dataVolume = "/System/Volumes/Data"

// firmlinks are the directories of the data volume that appear in the root
// under their own name (/usr/share/firmlinks).
var firmlinks = []string{
	"/AppleInternal", "/Applications", "/Library", "/Users", "/Volumes", "/cores", "/opt", "/private",
	"/System/Library/Assets", "/System/Library/AssetsV2", "/System/Library/Caches",
	"/System/Library/CoreServices/CoreTypes.bundle/Contents/Library",
	"/System/Library/PreinstalledAssets", "/System/Library/PreinstalledAssetsV2", "/System/Library/Speech",
	"/usr/libexec/cups", "/usr/local", "/usr/share/snmp",
}

// rootLinks are symbolic links of the root directory. A rule that names one
// matches nothing: the kernel asks with the path it found in the end.
var rootLinks = map[string]string{
	"/tmp":  "/private/tmp",
	"/var":  "/private/var",
	"/etc":  "/private/etc",
	"/home": dataVolume + "/home",
}

// seatbeltPath is the spelling under which Seatbelt knows a path: absolute,
// without trailing slash, /tmp and its kind by their real names and the data
// volume by its firmlinks. It looks at no file: symbolic links of the user's
// own were resolved before, and so were the fixed ones when the policy was
// resolved on a Mac.
func seatbeltPath(p string) (string, error) {
	if !strings.HasPrefix(p, "/") {
		return "", errNotAbs
	}
	if len(p) > 1 {
		p = strings.TrimSuffix(p, "/")
	}
	if path.Clean(p) != p {
		return "", errNotClean
	}
	if rest, ok := strings.CutPrefix(p, dataVolume); ok && strings.HasPrefix(rest, "/") {
		for _, f := range firmlinks {
			if within(rest, f) {
				p = rest
				break
			}
		}
	}
	for link, target := range rootLinks {
		if within(p, link) {
			return target + strings.TrimPrefix(p, link), nil
		}
	}
	return p, nil
}

// within says whether p is dir or lies below it.
func within(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// ancestors are the directories above p, "/" first; p itself is not among
// them.
func ancestors(p string) []string {
	if p == "/" || p == "" {
		return nil
	}
	as := []string{"/"}
	for i := 1; i < len(p); i++ {
		if p[i] == '/' {
			as = append(as, p[:i])
		}
	}
	return as
}

// regexQuote writes s so that it matches itself.
func regexQuote(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`.+*?()[]{}|^$\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// oneChar matches a character other than the slash. Whether Seatbelt's
// matcher counts bytes or characters is not known, so bytes outside ASCII that
// follow are taken along: a denial may match more than was written, not less.
const oneChar = "[^/][^ -~]*"

// globRegex turns an absolute glob into a regular expression that matches
// what the glob names and all that lies below it. "**" crosses directories, "*"
// and "?" do not, "[a-z]" and "[!a-z]" are classes. It uses nothing but
// anchors, the dot, classes, "*", "?", groups and "|": what profiles in the
// field use too. Counted repetitions are not among them.
func globRegex(glob string) (string, error) {
	var b strings.Builder
	b.WriteByte('^')
	for i := 0; i < len(glob); {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "/**/"):
			b.WriteString("/(.*/)?")
			i += len("/**/")
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i += len("**")
		case c == '*':
			b.WriteString("[^/]*")
			i++
		case c == '?':
			b.WriteString(oneChar)
			i++
		case c == '[':
			class, n, err := globClass(glob[i:])
			if err != nil {
				return "", err
			}
			b.WriteString(class)
			i += n
		case c == '\\':
			if i+1 == len(glob) {
				return "", fmt.Errorf("%w: it ends in a backslash", errGlobSyntax)
			}
			b.WriteString(regexQuote(glob[i+1 : i+2]))
			i += 2
		default:
			b.WriteString(regexQuote(glob[i : i+1]))
			i++
		}
	}
	b.WriteString("(/.*)?$")
	return b.String(), nil
}

// globClass turns the class at the start of s into one of a regular
// expression, and says how long it was. Only letters, digits and a few harmless
// signs may stand in it: dialects differ on everything else.
func globClass(s string) (class string, n int, err error) {
	end := strings.IndexByte(s, ']')
	if end < 2 {
		return "", 0, fmt.Errorf("%w: a class without end", errGlobSyntax)
	}
	body, negated := s[1:end], false
	if body[0] == '!' || body[0] == '^' {
		body, negated = body[1:], true
	}
	if body == "" || strings.HasSuffix(body, "-") || strings.HasPrefix(body, "-") {
		return "", 0, fmt.Errorf("%w: class %q", errGlobSyntax, s[:end+1])
	}
	for _, r := range body {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_., ~@", r)
		if !plain {
			return "", 0, fmt.Errorf("%w: class %q", errGlobSyntax, s[:end+1])
		}
	}
	if negated {
		return "[^/" + body + "][^ -~]*", end + 1, nil
	}
	return "[" + body + "]", end + 1, nil
}
