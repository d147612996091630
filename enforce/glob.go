package enforce

import (
	"path"
	"strings"
)

// matchGlob says whether an absolute glob names an absolute path. "**" stands
// for any number of whole elements, none included; within an element, path.Match
// decides.
func matchGlob(pattern, p string) bool {
	return matchElements(elements(pattern), elements(p), false)
}

// globReaches says whether a glob may name something below dir.
func globReaches(pattern, dir string) bool {
	return matchElements(elements(pattern), elements(dir), true)
}

// matchElements matches all of pattern against p; with prefix set it is enough
// that p can be continued to a match by at least one element.
func matchElements(pattern, p []string, prefix bool) bool {
	if len(p) == 0 {
		if prefix {
			return len(pattern) > 0
		}
		for _, e := range pattern {
			if e != "**" {
				return false
			}
		}
		return true
	}
	if len(pattern) == 0 {
		return false
	}
	if pattern[0] == "**" {
		return matchElements(pattern[1:], p, prefix) || matchElements(pattern, p[1:], prefix)
	}
	ok, err := path.Match(pattern[0], p[0])
	return err == nil && ok && matchElements(pattern[1:], p[1:], prefix)
}

func elements(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}
