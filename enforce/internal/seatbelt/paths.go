package seatbelt

import (
	"errors"
	"path"
	"strings"

	"github.com/zsbx/zsbx/policy"
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
var rootLinks = [...][2]string{
	{"/tmp", "/private/tmp"},
	{"/var", "/private/var"},
	{"/etc", "/private/etc"},
	{"/home", dataVolume + "/home"},
}

// Path is the spelling under which Seatbelt knows a path: absolute,
// without trailing slash, /tmp and its kind by their real names and the data
// volume by its firmlinks. It looks at no file: symbolic links of the user's
// own were resolved before, and so were the fixed ones when the policy was
// resolved on a Mac.
func Path(p string) (string, error) {
	if !strings.HasPrefix(p, "/") {
		return "", errors.New("it is not an absolute path")
	}
	if len(p) > 1 {
		p = strings.TrimSuffix(p, "/")
	}
	if path.Clean(p) != p {
		return "", errors.New(`it has an empty, "." or ".." element`)
	}
	if rest, ok := strings.CutPrefix(p, dataVolume); ok && strings.HasPrefix(rest, "/") {
		for _, f := range firmlinks {
			if policy.Within(rest, f) {
				p = rest
				break
			}
		}
	}
	for _, l := range rootLinks {
		if policy.Within(p, l[0]) {
			return l[1] + strings.TrimPrefix(p, l[0]), nil
		}
	}
	return p, nil
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
