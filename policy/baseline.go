package policy

// The baseline is what nearly every program needs from a system: to run the
// installed programs, to read the system's settings and data, and to use the
// harmless devices. It holds nothing below the home directory but the files
// that shells and git read at their start.

// Baseline returns the built-in rules of an operating system, "linux" or
// "macos"; other names get an empty policy. All its rules are Optional and
// have the origin "baseline". FS.System holds the three categories that a
// policy may replace one by one, FS.Rules the dotfiles, which belong to none.
//
// docs/policy.md lists every path on Linux.
func Baseline(os string) *Policy {
	p := &Policy{}
	switch os {
	case "linux":
		p.FS.System = linuxBaseline()
	case "macos":
		p.FS.System = macosBaseline()
	default:
		return p
	}
	p.FS.Rules = dotfiles()
	return p
}

// baselineOrigin marks a rule as zsbx's own.
func baselineOrigin() Origin { return Origin{Source: "baseline"} }

// optional makes one rule for each path, all with the same access.
func optional(from Origin, access Access, paths ...string) []Rule {
	rules := make([]Rule, len(paths))
	for i, p := range paths {
		rules[i] = Rule{Path: p, Access: access, Optional: true, Origin: from}
	}
	return rules
}

// dotfiles are the settings that shells, readline and git read when they
// start, and the harmless parts of ~/.config. They are readable and never
// writable: whoever can write them runs code in the user's next shell.
// ~/.config as a whole is left out, because many programs keep tokens there.
func dotfiles() []Rule {
	return optional(baselineOrigin(), Read,
		"~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.bash_aliases", "~/.profile",
		"~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.zlogin", "~/.zlogout",
		"~/.inputrc", "~/.terminfo", "~/.dircolors", "~/.hushlogin", "~/.tmux.conf",
		"~/.gitconfig",
		"${XDG_CONFIG_HOME:-~/.config}/git/config",
		"${XDG_CONFIG_HOME:-~/.config}/git/ignore",
		"${XDG_CONFIG_HOME:-~/.config}/git/attributes",
		"${XDG_CONFIG_HOME:-~/.config}/fish/config.fish",
		"${XDG_CONFIG_HOME:-~/.config}/fish/conf.d",
		"${XDG_CONFIG_HOME:-~/.config}/fish/functions",
		"${XDG_CONFIG_HOME:-~/.config}/fish/completions",
		"${XDG_CONFIG_HOME:-~/.config}/tmux/tmux.conf",
		"${XDG_CONFIG_HOME:-~/.config}/starship.toml",
		"${XDG_CONFIG_HOME:-~/.config}/user-dirs.dirs",
		"${XDG_CONFIG_HOME:-~/.config}/user-dirs.locale",
		"${XDG_CONFIG_HOME:-~/.config}/locale.conf",
	)
}
