package policy

import "slices"

// Places of keys, tokens and passwords, and of what lets a program act through
// another one outside. They guard the baseline and the presets; a user may
// allow any of them.

// secretGroup are places below one directory. docs/presets.md names this file.
type secretGroup struct {
	kind  string   // what the places are
	base  string   // as in Rule.Path, "${NAME:-word}" included
	names []string // sorted
}

// Where the XDG base directory specification has programs keep their files.
const (
	xdgConfig = "${XDG_CONFIG_HOME:-~/.config}"
	xdgData   = "${XDG_DATA_HOME:-~/.local/share}"
	xdgState  = "${XDG_STATE_HOME:-~/.local/state}"
	xdgCache  = "${XDG_CACHE_HOME:-~/.cache}"
)

// kindAgents is the kind of what coding agents keep.
const kindAgents = "coding agents"

// secretGroups is the table, as of 2026-11-22.
func secretGroups() []secretGroup {
	return slices.Concat(serviceSecrets(), toolSecrets(), programSecrets())
}

// serviceSecrets are keys, and what opens services elsewhere.
func serviceSecrets() []secretGroup {
	return []secretGroup{
		{"keys and passwords", "~", []string{
			".1password", ".age", ".authinfo", ".authinfo.gpg", ".bitcoin", ".cert", ".davfs2/secrets", ".electrum", ".ethereum", ".exodus",
			".foundry/keystores", ".gnome2/keyrings", ".gnupg", ".k5login", ".keychain", ".krb5cc", ".ledger-live", ".monero", ".near-credentials",
			".netrc", ".password-store", ".pki", ".putty", ".rhosts", ".secrets", ".smbcredentials", ".solana", ".ssh", ".step", ".tsh",
			".vault-token", ".yubico", "_netrc",
		}},
		{"keys and passwords", xdgConfig, []string{
			"1Password", "Bitwarden", "Bitwarden CLI", "Exodus", "KeePass", "Ledger Live", "Yubico", "aerc", "age", "borg", "filezilla", "goa-1.0",
			"gopass", "himalaya", "isync", "keepassxc", "libaccounts-glib", "msmtp", "mutt", "neomutt", "op", "rclone", "remmina", "restic",
			"solana", "sops",
		}},
		{"keys and passwords", xdgData, []string{"containers/auth.json", "gopass", "keepassxc", "keyrings", "kwalletd", "password-store", "pki", "remmina"}},
		{"code hosting", "~", []string{".bitbucket", ".git-credentials", ".gitea", ".glab-cli", ".hgauthrc", ".subversion/auth"}},
		{"code hosting", xdgConfig, []string{"gh", "git-credential-manager", "git/credentials", "github-copilot", "glab-cli", "hub", "jj/auth.toml", "tea"}},
		{"clouds", "~", []string{
			".aliyun", ".ansible/galaxy_token", ".ansible_vault_pass", ".aws", ".azure", ".bluemix", ".boto", ".chef", ".cloudflared", ".consul",
			".dagger", ".databrickscfg", ".docker", ".firebase", ".fly", ".heroku", ".huggingface", ".k3d", ".kaggle", ".kube", ".lima/_config",
			".minikube", ".modal.toml", ".netlify", ".ngrok2", ".nomad", ".oci", ".packer.d", ".pulumi", ".railway", ".s3cfg", ".sentryclirc",
			".snowflake", ".snowsql", ".supabase", ".tccli", ".terraform.d", ".terraformrc", ".tofu.d", ".tofurc", ".vagrant.d/data",
			".vault_pass", ".vercel", ".wrangler",
		}},
		{"clouds", xdgConfig, []string{
			".wrangler", "argocd", "circleci", "cloudflared", "com.vercel.cli", "configstore", "containers", "doctl", "doppler", "exoscale", "fly",
			"gcloud", "hcloud", "helm", "heroku", "infisical", "linode-cli", "netlify", "ngrok", "pulumi", "scw", "sentry", "snowflake", "stripe",
			"tailscale", "vultr-cli",
		}},
		{"clouds", xdgData, []string{"com.vercel.cli", "pulumi", "tailscale", "wrangler"}},
		{"clouds", xdgCache, []string{"cloud-code", "huggingface/stored_tokens", "huggingface/token"}},
	}
}

// toolSecrets are what package managers keep, and what lets a program act
// through one that runs outside.
func toolSecrets() []secretGroup {
	return []secretGroup{
		{"package managers", "~", []string{
			".bundle/config", ".bunfig.toml", ".cabal/config", ".composer/auth.json", ".conda/.condarc", ".condarc", ".continuum", ".cpanm",
			".gem/credentials", ".gemrc", ".hex", ".ivy2/.credentials", ".ivy2/credentials", ".luarocks/config.lua", ".m2/settings-security.xml",
			".m2/settings.xml", ".mambarc", ".npmrc", ".nuget/NuGet", ".pause", ".pip", ".pypirc", ".sbt/.credentials", ".sbt/1.0/credentials.sbt",
			".sbt/1.0/global.sbt", ".sbt/credentials", ".sbt/repositories", ".yarnrc", ".yarnrc.yml",
		}},
		{"package managers", xdgConfig, []string{
			"NuGet", "composer/auth.json", "conda", "coursier/credentials.properties", "hatch", "hex", "nix", "npm", "pdm", "pip", "pnpm",
			"pypoetry", "uv", "yarn",
		}},
		{"package managers", xdgData, []string{"pypoetry/auth.toml", "uv/credentials"}},
		{"package managers", "${CARGO_HOME:-~/.cargo}", []string{"credentials", "credentials.toml"}},
		{"package managers", "${GRADLE_USER_HOME:-~/.gradle}", []string{"gradle.properties", "init.d"}},
		{"version managers", "${MISE_CONFIG_DIR:-" + xdgConfig + "/mise}", []string{"age.txt", "conf.d", "config.local.toml"}},
		{"daemons that act outside", "~", []string{
			".ICEauthority", ".Xauthority", ".bloop", ".buck", ".cursor-server", ".dbus", ".emacs.d/server", ".erlang.cookie",
			".ipython/profile_default/security", ".jupyter", ".kotlin/daemon", ".m2/mvnd", ".pulse-cookie", ".vnc", ".vscode-cli",
			".vscode-server", ".vscode-server-insiders", ".watchman", ".windsurf-server",
		}},
		{"daemons that act outside", "${GRADLE_USER_HOME:-~/.gradle}", []string{"daemon"}},
		{"daemons that act outside", xdgConfig, []string{"code-server", "emacs/server", "obs-studio", "pulse", "remote-containers", "syncthing", "tigervnc"}},
		{"daemons that act outside", xdgData, []string{"code-server", "jupyter/runtime", "scalacli/bloop"}},
		{"daemons that act outside", xdgState, []string{"syncthing", "watchman"}},
		{"daemons that act outside", xdgCache, []string{"bazel", "bloop"}},
	}
}

// programSecrets are of the programs that a person works with.
func programSecrets() []secretGroup {
	return []secretGroup{
		{kindAgents, "~", []string{
			".aider", ".aider.conf.yml", ".amp", ".augment", ".claude", ".claude.json", ".cline", ".codeium", ".codex", ".continue", ".copilot",
			".crush", ".cursor", ".factory", ".gemini", ".goose", ".junie", ".kilocode", ".kiro", ".ollama/id_ed25519", ".openhands",
			".plandex-home", ".qwen", ".roo", ".tabby-client", ".trae", ".windsurf",
		}},
		{kindAgents, xdgConfig, []string{
			"Claude", "Cursor", "Kiro", "Windsurf", "aichat", "amp", "claude", "codex", "crush", "cursor", "goose", "io.datasette.llm", "kilo",
			"mods", "opencode", "shell_gpt",
		}},
		{kindAgents, xdgData, []string{"amp", "claude", "crush", "cursor-agent", "goose", "kilo", "opencode"}},
		{kindAgents, xdgState, []string{"crush", "opencode"}},
		{"editors", "~", []string{
			".emacs.d/auth-source", ".emacs.d/tramp", ".sublime", ".viminfo", ".vscode", ".vscode-insiders", ".vscode-oss",
		}},
		{"editors", xdgConfig, []string{
			"Code", "Code - Insiders", "Code - OSS", "Insomnia", "JetBrains", "Postman", "VSCodium", "Zed", "bruno", "sublime-text", "zed",
		}},
		{"editors", xdgData, []string{"DBeaverData", "JetBrains", "nvim/shada", "zed"}},
		{"editors", xdgState, []string{"nvim"}},
		{"databases", "~", []string{
			".cassandra", ".clickhouse-client", ".dbeaver4", ".dbshell", ".influxdbv2", ".mongodb", ".mongorc.js", ".mongosh", ".my.cnf",
			".mylogin.cnf", ".mysql_history", ".odbc.ini", ".pg_service.conf", ".pgpass", ".psql_history", ".psqlrc", ".rediscli_auth",
			".rediscli_history", ".sqlite_history",
		}},
		{"databases", xdgConfig, []string{"beekeeper-studio", "clickhouse", "litecli", "mongodb", "mycli", "pgcli"}},
		{"mail, messages, browsers", "~", []string{
			".fetchmail", ".fetchmailrc", ".getmail", ".irssi", ".librewolf", ".mbsyncrc", ".mozilla", ".msmtprc", ".mutt", ".muttrc",
			".offlineimaprc", ".purple", ".thunderbird", ".tor", ".var/app", ".waterfox", ".weechat", ".zoom", "snap",
		}},
		{"mail, messages, browsers", xdgConfig, []string{
			"BraveSoftware", "Element", "Microsoft", "Signal", "Slack", "chromium", "discord", "epiphany", "evolution", "google-chrome",
			"google-chrome-beta", "irssi", "microsoft-edge", "opera", "qutebrowser", "teams-for-linux", "vivaldi", "weechat", "zoom.conf",
		}},
		{"mail, messages, browsers", xdgData, []string{"TelegramDesktop", "epiphany", "evolution", "mail", "qutebrowser", "signal-cli"}},
		{"mail, messages, browsers", xdgCache, []string{"chromium", "google-chrome", "mozilla", "thunderbird"}},
		{"histories", "~", []string{
			".bash_history", ".ghc/ghci_history", ".histfile", ".irb_history", ".lesshst", ".node_repl_history", ".pry_history", ".python_history",
			".zhistory", ".zsh_history",
		}},
		{"histories", xdgData, []string{"atuin", "fish", "mc/history", "nushell"}},
		{"histories", xdgState, []string{"bash", "python_history", "zsh"}},
		{"macOS", "~", []string{"Library/Application Support", "Library/Cookies", "Library/Keychains"}},
	}
}

// secretsInTrees are files with tokens in directories that presets open as a
// whole, since programs are in them. A "*" stands for one directory.
func secretsInTrees() []string {
	return []string{
		"${NVM_DIR:-~/.nvm}/versions/node/*/etc/npmrc",
		"${FNM_DIR:-" + xdgData + "/fnm}/node-versions/*/installation/etc/npmrc", "~/.fnm/node-versions/*/installation/etc/npmrc",
		"~/Library/Application Support/fnm/node-versions/*/installation/etc/npmrc",
		"${VOLTA_HOME:-~/.volta}/tools/image/node/*/etc/npmrc",
		"${ASDF_DATA_DIR:-~/.asdf}/installs/nodejs/*/etc/npmrc", "${MISE_DATA_DIR:-" + xdgData + "/mise}/installs/node/*/etc/npmrc",
		"${PROTO_HOME:-~/.proto}/tools/node/*/etc/npmrc",
		"${CONDA_PREFIX:-~/miniconda3}/.condarc", "~/anaconda3/.condarc", "~/miniforge3/.condarc", "~/mambaforge/.condarc",
		"${CONDA_PREFIX:-~/miniconda3}/envs/*/.condarc", "~/anaconda3/envs/*/.condarc", "~/miniforge3/envs/*/.condarc", "~/mambaforge/envs/*/.condarc",
		"${CONDA_PREFIX:-~/miniconda3}/pip.conf", "~/anaconda3/pip.conf", "~/miniforge3/pip.conf", "~/mambaforge/pip.conf",
		"${CONDA_PREFIX:-~/miniconda3}/envs/*/pip.conf", "~/anaconda3/envs/*/pip.conf", "~/miniforge3/envs/*/pip.conf", "~/mambaforge/envs/*/pip.conf",
		"${PYENV_ROOT:-~/.pyenv}/versions/*/pip.conf", "${UV_PYTHON_INSTALL_DIR:-" + xdgData + "/uv/python}/*/pip.conf",
		"${ASDF_DATA_DIR:-~/.asdf}/installs/python/*/pip.conf", "${MISE_DATA_DIR:-" + xdgData + "/mise}/installs/python/*/pip.conf",
		"${POETRY_CACHE_DIR:-" + xdgCache + "/pypoetry}/virtualenvs/*/pip.conf", "~/Library/Caches/pypoetry/virtualenvs/*/pip.conf",
		"${VIRTUAL_ENV:-~/.virtualenvs/*}/pip.conf", "${WORKON_HOME:-~/.virtualenvs}/*/pip.conf",
		"${UV_TOOL_DIR:-" + xdgData + "/uv/tools}/*/uv-receipt.toml", "${PIPX_HOME:-" + xdgData + "/pipx}/venvs/*/pipx_metadata.json",
		"~/.local/pipx/venvs/*/pipx_metadata.json", "~/Library/Application Support/pipx/venvs/*/pipx_metadata.json",
		"~/.sbt/1.0/plugins/credentials.sbt",
	}
}
