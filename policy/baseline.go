package policy

import "github.com/zsbx/zsbx/policy/internal/tables"

// Baseline returns the built-in rules of an operating system, "linux" or
// "macos": what nearly every program needs from it, to run the installed
// programs, to read the system's settings and data, and to use the harmless
// devices. Other names get an empty policy. It holds nothing below the home
// directory but the files that shells and git read at their start.
//
// All its rules are Optional and have the origin "baseline". FS.System holds the
// three categories that a policy may replace one by one, FS.Rules the dotfiles,
// which belong to none. docs/policy.md lists every path on Linux.
func Baseline(os string) *Policy {
	p := &Policy{}
	if os != "linux" && os != "macos" {
		return p
	}
	from, table := Origin{Source: "baseline"}, tables.Baseline()
	for _, c := range p.FS.System.categories() {
		*c.rules = optional(from, c.access, tables.Find(table, os+" "+c.key)...)
	}
	p.FS.Rules = optional(from, Read, tables.Find(table, "dotfiles")...)
	return p
}

// optional makes one rule for each path, all with the same access.
func optional(from Origin, access Access, paths ...string) []Rule {
	rules := make([]Rule, len(paths))
	for i, p := range paths {
		rules[i] = Rule{Path: p, Access: access, Optional: true, Origin: from}
	}
	return rules
}
