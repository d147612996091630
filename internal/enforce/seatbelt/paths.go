package seatbelt

import (
	"errors"
	"path"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
)

// dataVolume is where the writable volume is mounted. Most of its files are reached through
// firmlinks, and the kernel names them by these.
const dataVolume = "/System/Volumes/Data"

// firmlinks are the directories of the data volume that appear under the same name in the root
// (/usr/share/firmlinks).
var firmlinks = []string{
	"/AppleInternal", "/Applications", "/Library", "/Users", "/Volumes", "/cores", "/opt", "/private",
	"/System/Library/Assets", "/System/Library/AssetsV2", "/System/Library/Caches",
	"/System/Library/CoreServices/CoreTypes.bundle/Contents/Library",
	"/System/Library/PreinstalledAssets", "/System/Library/PreinstalledAssetsV2", "/System/Library/Speech",
	"/usr/libexec/cups", "/usr/local", "/usr/share/snmp",
}

// rootLinks are symbolic links in the root directory. A rule for one matches nothing, since the
// kernel checks the path after following links.
var rootLinks = [...][2]string{
	{"/tmp", "/private/tmp"},
	{"/var", "/private/var"},
	{"/etc", "/private/etc"},
	{"/home", dataVolume + "/home"},
}

// Path returns the spelling by which Seatbelt knows a path: absolute, without a trailing slash,
// with root links resolved and the data volume replaced by its firmlinks. It reads no files.
// Other symbolic links were resolved before; on a Mac the root links were, too.
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
			if host.Within(rest, f) {
				p = rest
				break
			}
		}
	}
	for _, l := range rootLinks {
		if host.Within(p, l[0]) {
			return l[1] + strings.TrimPrefix(p, l[0]), nil
		}
	}
	return p, nil
}

// ancestors returns the directories above p, "/" first, without p itself.
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
