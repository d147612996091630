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

// catastrophic checks one command against the rules of that list.
func (c *checker) catastrophic(name string, args []word) error {
	ops := operands(args)
	found := func(w word, what string) error { return c.refuse(w, Catastrophic, name+" "+what) }
	for i, w := range ops {
		last := i == len(ops)-1
		switch name {
		case "rm", "srm", "shred", "truncate", "tee":
			if isDevice(w.text) {
				return found(w, w.text)
			}
			if name == "rm" && recursive(args) && c.vital(w) {
				return found(w, "-r "+w.text)
			}
		case "chmod", "chown", "chgrp", "setfacl", "chattr":
			if recursive(args) && c.vital(w) {
				return found(w, "-R "+w.text)
			}
		case "cp", "mv", "install", "dd", "dcfldd":
			if of, isOf := strings.CutPrefix(w.text, "of="); last && isDevice(w.text) || isOf && isDevice(of) {
				return found(w, w.text)
			}
			if name == "mv" && !last && c.vital(w) {
				return found(w, w.text)
			}
		case "find":
			for _, act := range args {
				if c.vital(w) && (act.text == "-delete" || base(act) == "rm" || base(act) == "shred") && slices.Index(args, w) < slices.Index(args, act) {
					return found(w, w.text+" "+act.text)
				}
			}
		}
	}
	return nil
}

// recursive reports whether the options of rm(1), chmod(1) and their like say so.
func recursive(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		long := strings.HasPrefix(w.text, "--")
		return long && len(w.text) > 2 && strings.HasPrefix("--recursive", w.text) || !long && strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "rR")
	})
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
func (c *checker) vital(w word) bool {
	if w.text == "" {
		return false
	}
	p := c.absolute(w.text)
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
