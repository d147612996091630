package policy

import "strings"

// scrubbedKeeps lists what programs need and what gives nothing away: who and
// where the user is, language, terminal, time zone, editor, where toolchains
// lie, proxies and certificates.
func scrubbedKeeps(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD",
		"LANG", "LANGUAGE", "TZ",
		"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERMINFO", "TERMINFO_DIRS", "COLORTERM", "COLORFGBG",
		"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LS_COLORS",
		"EDITOR", "VISUAL", "PAGER", "GPG_TTY",
		"HOSTNAME", "CI", "DEBIAN_FRONTEND", "SOURCE_DATE_EPOCH", "MANPATH", "INFOPATH",
		"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE",
		"JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "SDKROOT", "DEVELOPER_DIR",
		"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
		"NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO":
		return true
	case "XDG_RUNTIME_DIR": // the sockets of the user's daemons lie there
		return false
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}

// steersLoader reports variables that make a dynamic loader, a shell or an
// interpreter load or run other code than it was asked to. The first names
// are those that glibc removes for set-user-ID programs (ld.so(8)).
func steersLoader(name string) bool {
	switch name {
	case "GCONV_PATH", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "MALLOC_TRACE", "NIS_PATH", "NLSPATH",
		"RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR", "GLIBC_TUNABLES",
		// shells
		"BASH_ENV", "ENV", "BASHOPTS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE", "ZDOTDIR", "FPATH",
		// interpreters
		"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "ELECTRON_RUN_AS_NODE", "BUN_OPTIONS",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONPLATLIBDIR",
		"PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "PERL5SHELL", "RUBYOPT", "RUBYLIB",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH",
		"PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER", "TCLLIBPATH",
		"DOTNET_STARTUP_HOOKS", "CORECLR_ENABLE_PROFILING", "CORECLR_PROFILER", "CORECLR_PROFILER_PATH",
		"ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ERL_LIBS", "GUILE_LOAD_PATH", "JULIA_LOAD_PATH",
		"VIMINIT", "EXINIT", "GVIMINIT", "EMACSLOADPATH",
		// commands that other programs run
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "GIT_EXEC_PATH",
		"GIT_TEMPLATE_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS",
		"GIT_CONFIG_COUNT", "SSH_ASKPASS", "SUDO_ASKPASS",
		"LESSOPEN", "LESSCLOSE", "MAKEFILES", "CONFIG_SITE", "GCC_EXEC_PREFIX", "COMPILER_PATH",
		// plug-ins of libraries
		"OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "GTK_MODULES", "GTK_PATH", "GTK_EXE_PREFIX",
		"GDK_PIXBUF_MODULE_FILE", "GIO_EXTRA_MODULES", "QT_PLUGIN_PATH", "XCURSOR_PATH":
		return true
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "BASH_FUNC_", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// secretName reports names that look like those of secrets: a word of it, as
// separated by underscores, is one for a secret, or it belongs to a cloud's
// or a vault's family. Upper and lower case count the same.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, prefix := range [...]string{"AWS_", "AZURE_", "VAULT_", "OP_SESSION", "BW_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, part := range [...]string{"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIAL", "APIKEY", "ACCESSKEY"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	switch name {
	case "PWD":
		return false
	case "DATABASE_URL", "KUBECONFIG", "NETRC":
		return true
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ':' || r == '/' })
	for _, w := range words {
		switch w {
		case "TOKEN", "TOKENS", "KEY", "KEYS", "PASS", "CREDS", "AUTH", "AUTHTOKEN", "AUTHORIZATION", "COOKIE", "COOKIES",
			"JWT", "BEARER", "DSN", "PAT", "PWD", "PRIVATE", "CERTIFICATE":
			return true
		}
		if strings.HasSuffix(w, "TOKEN") {
			return true
		}
	}
	return false
}

// hasURLPassword reports a value that has a URL with a password in it, as
// database and proxy variables do. In one for HTTP a lone user name is taken
// for a token.
func hasURLPassword(value string) bool {
	for {
		scheme, after, ok := strings.Cut(value, "://")
		if !ok {
			return false
		}
		authority := after
		if i := strings.IndexAny(authority, "/?# \t\n,"); i >= 0 {
			authority = authority[:i]
		}
		if user, _, ok := strings.Cut(authority, "@"); ok {
			if strings.Contains(user, ":") || strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https") {
				return true
			}
		}
		value = after
	}
}
