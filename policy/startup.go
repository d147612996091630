package policy

import (
	"io/fs"
	"slices"
	"strings"
)

// StartupFiles are files and directories below the home directory that the
// user's next shell, login, git or editor reads and executes.
func StartupFiles() []string {
	return []string{
		".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_logout", ".bash_aliases",
		".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login",
		".config/fish", ".config/git/config", ".gitconfig", ".config/autostart", ".config/systemd/user",
		".config/environment.d", ".pam_environment", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc",
		".ssh/authorized_keys", ".ssh/config", ".ssh/rc", ".inputrc", ".tmux.conf", ".vimrc", ".emacs",
		".bash_completion", ".config/zsh/.zshenv", ".config/zsh/.zprofile", ".config/zsh/.zshrc", ".config/nushell/config.nu", ".config/nushell/env.nu",
		".config/direnv", ".config/tmux/tmux.conf", ".vim/vimrc", ".config/emacs/init.el", ".config/nvim", ".emacs.d/init.el", ".npmrc", ".pythonrc.py", ".gdbinit", ".forward",
	}
}

// programPlaces are directories below the home directory whose content is
// executed under other names, on PATH or by the desktop, or loaded by every
// program of an interpreter.
func programPlaces() []string {
	return []string{
		".local/bin", ".local/lib", ".local/share/applications", ".local/share/systemd", ".local/share/dbus-1",
		".local/share/uv", ".local/share/pipx", ".config/zsbx", ".local/state/zsbx", "Library/LaunchAgents",
		// Programs of version managers and package managers.
		".cargo/bin", "go/bin", ".rustup/toolchains", ".nvm", ".pyenv", ".rbenv", ".asdf", ".sdkman", ".volta", ".local/share/mise", ".local/share/fnm",
		".npm-global", ".bun/bin", ".deno/bin", ".dotnet/tools",
		// What editors, shells and desktops load.
		".vim", ".emacs.d", ".config/emacs", ".local/share/nvim", ".oh-my-zsh", ".config/zsh", ".config/hypr", ".config/i3", ".config/sway", ".config/mpv",
	}
}

// systemPlaces are where the system keeps what it executes and is set up by.
// Not all of /usr: images for builds keep toolchains in /usr/local/cargo and
// the like.
func systemPlaces() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot", "/dev", "/etc", "/run", "/proc", "/sys",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include",
		"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/libexec", "/usr/local/etc", "/usr/local/share", "/usr/local/include",
		"/var/spool", "/var/run", "/var/lib/dpkg", "/var/lib/systemd", "/nix", "/gnu",
		"/System", "/Library", "/Applications", "/private/etc", "/private/var/at", "/private/var/db", "/opt/homebrew",
	}
}

// projectPlaces are directories of a project that git, editors and agents act
// upon.
func projectPlaces() []string {
	return []string{
		".git", ".hg", ".jj", ".sl", ".vscode", ".idea", ".run", ".zed", ".helix", ".devcontainer", ".claude", ".cursor", ".gemini", ".qwen", ".codex", ".opencode",
		".kilo", ".kilocode", ".roo", ".kiro", ".clinerules", ".windsurf", ".amp", ".factory", ".continue", ".junie", ".trae", ".augment", ".copilot",
	}
}

// actedUpon says which of these places could be changed by writing to a path,
// or "".
func (g *guard) actedUpon(p *Path) string {
	for name := range strings.SplitSeq(p.Path, "/") {
		if name != "" && name[0] == '.' && slices.Contains(projectPlaces(), name) {
			return name
		}
	}
	if rel, ok := strings.CutPrefix(p.Path, g.home+"/"); ok && g.home != "." {
		return startedBy(rel, p.Mode&fs.ModeDir != 0)
	}
	return placeOf(p.Path, p.Mode&fs.ModeDir != 0, systemPlaces())
}

// startedBy is the place below the home directory that programs outside start, or
// read when they start, and that writing to a path below it could change, or "".
func startedBy(rel string, dir bool) string {
	if place := placeOf(rel, dir, StartupFiles()); place != "" {
		return place
	}
	return placeOf(rel, dir, programPlaces())
}

// placeOf is the first of some places that a path lies in, or that lies in it.
func placeOf(p string, dir bool, places []string) string {
	for _, place := range places {
		if Within(p, place) || dir && Within(place, p) {
			return place
		}
	}
	return ""
}

// StartedOutside is what the user's next shell, login or program would start or
// read when it starts, if a command could write to a canonical path: a directory on
// PATH, or a place in the home directory. It is "" for none. The path need not
// exist.
func (r *Resolved) StartedOutside(p string) string {
	if r.host.Lstat == nil {
		return ""
	}
	g := r.host.newGuard()
	if rel, ok := strings.CutPrefix(p, g.home+"/"); ok && g.home != "." {
		if place := startedBy(rel, true); place != "" {
			return "~/" + place
		}
	}
	g.search = r.host.realSearchPath()
	_, st, _ := r.Look(p)
	return g.onPATH(Path{Path: p, Mode: st.Mode})
}
