package policy

// linuxBaseline holds the Linux categories. It has no build tag, so that
// "profile --os linux" works everywhere.
func linuxBaseline() System {
	from := baselineOrigin()
	return System{
		// Programs and the libraries that they load. Distributions with
		// a merged /usr have /bin, /sbin and /lib* as links into /usr:
		// they resolve to the same directories and cost nothing.
		Executable: optional(from, Read|Exec,
			"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
			"/opt",
			"/nix/store", "/gnu/store",
			"/home/linuxbrew/.linuxbrew",
		),
		ReadOnly: optional(from, Read,
			"/etc",
			// Files in /etc that are links into /run on some systems:
			// a rule holds for a link's target, not for the link.
			"/etc/resolv.conf", "/etc/hosts", "/etc/localtime",
			"/run/systemd/resolve", "/run/resolvconf",
			// Not /proc/self: that is a link which would be resolved
			// to zsbx's own directory.
			"/proc",
			// What language run times read to size themselves.
			"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
			"/var/lib/ca-certificates", "/var/lib/dpkg", "/var/lib/texmf", "/var/cache/fontconfig",
		),
		// Named devices rather than /dev, which holds disks, cameras,
		// input and the kernel's log. fd, stdin, stdout and stderr are
		// links into /proc and need no rule of their own.
		ReadWrite: optional(from, Read|Write,
			"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
			"/dev/tty", "/dev/ptmx", "/dev/pts",
			"/dev/shm",
		),
	}
}

// macosBaseline holds the macOS categories. Paths are canonical: Seatbelt
// compares real paths, so a rule on /tmp, /var or /etc would never match.
func macosBaseline() System {
	from := baselineOrigin()
	return System{
		Executable: optional(from, Read|Exec,
			"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec",
			// The linker's shared cache and the parts of the system
			// that Apple updates by themselves.
			"/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes",
			"/Library/Apple/usr",
			// What the shims in /usr/bin start, wherever that is: see wholeApp.
			// The links, and the order in which they are asked, are xcrun's.
			"/Library/Developer/CommandLineTools", "/Applications/Xcode.app/Contents",
			"/private/var/db/xcode_select_link", "/private/var/select/developer_dir",
			"${DEVELOPER_DIR:-/Library/Developer/CommandLineTools}",
			"/Library/Java/JavaVirtualMachines", "/Library/Frameworks/Python.framework",
			"/opt/homebrew/bin", "/opt/homebrew/sbin", "/opt/homebrew/Cellar", "/opt/homebrew/lib", "/opt/homebrew/opt",
			"/opt/homebrew/libexec", "/opt/homebrew/Caskroom", "/opt/homebrew/Library",
			"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/Cellar", "/usr/local/opt", "/usr/local/go",
			"/usr/local/libexec", "/usr/local/Caskroom", "/usr/local/Homebrew",
			"/opt/local/bin", "/opt/local/sbin", "/opt/local/lib", "/opt/local/libexec",
			"/nix/store",
		),
		ReadOnly: optional(from, Read,
			"/private/etc",
			"/private/var/db/timezone",
			// Which shell /bin/sh is, among others.
			"/private/var/select",
			"/usr/share",
			// Whether the licence was agreed to: the shims refuse to start
			// where they can't tell.
			"/Library/Preferences/com.apple.dt.Xcode.plist", "/Library/Preferences/com.apple.dt.CommandLineTools.plist",
			"/Library/Preferences/SystemConfiguration",
			"/Library/Preferences/.GlobalPreferences.plist",
			"~/Library/Preferences/.GlobalPreferences.plist", "~/.CFUserTextEncoding",
			"/Library/Perl", "/Library/Ruby",
			"/dev/autofs_nowait",
			"/opt/homebrew/share", "/opt/homebrew/etc", "/opt/homebrew/include", "/opt/homebrew/Frameworks",
			"/usr/local/share", "/usr/local/etc", "/usr/local/include", "/usr/local/Frameworks",
			"/opt/local/share", "/opt/local/etc", "/opt/local/include",
		),
		ReadWrite: optional(from, Read|Write,
			"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
			"/dev/tty", "/dev/ptmx", "/dev/fd",
			"/dev/dtracehelper",
			// DNS goes through this socket. It answers names only.
			"/private/var/run/mDNSResponder",
		),
	}
}
