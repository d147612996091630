package policy

// presetTable says when each preset applies. It is Go rather than part of the
// presets' TOML, so that a start reads only the files of the presets in use.
// Sorted by name.
func presetTable() []PresetInfo {
	return []PresetInfo{
		{
			Name: "aider", Description: "aider: its settings and keys",
			Commands: []string{"aider"},
		},
		{
			Name: "bazel", Description: "Bazel: an output tree of the project's own",
			Commands: []string{"bazel", "bazelisk", "bazel-*"},
			Files:    []string{"MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"},
		},
		{
			Name: "cc", Description: "C and C++: make, cmake, ninja, meson",
			Commands: []string{"make", "gmake", "cmake", "ctest", "ninja", "meson", "gcc", "g++", "cc", "c++", "clang", "clang++"},
			Files:    []string{"Makefile", "GNUmakefile", "CMakeLists.txt", "meson.build", "configure"},
		},
		{
			Name: "ccache", Description: "compiler caches: ccache, sccache",
			Commands: []string{"ccache", "sccache"},
			Programs: []string{"ccache", "sccache"},
		},
		{
			Name: "chromium", Description: "Chromium and relatives: a profile of the project's own",
			Commands: []string{"chromium", "chromium-browser", "chrome", "google-chrome", "google-chrome-*", "brave-browser", "microsoft-edge", "chromedriver"},
		},
		{
			Name: "claude", Description: "Claude Code: a directory of the project's own, the login",
			Commands: []string{"claude"},
		},
		{
			Name: "codex", Description: "Codex: a directory of the project's own, the login",
			Commands: []string{"codex"},
		},
		{
			Name: "copilot", Description: "GitHub Copilot CLI: a directory of the project's own, the login",
			Commands: []string{"copilot"},
		},
		{
			Name: "cursor", Description: "Cursor's agent: directories of the project's own, the login",
			Commands: []string{"cursor-agent"},
		},
		{
			Name: "dotnet", Description: ".NET: the SDK, NuGet's packages of the project's own",
			Commands: []string{"dotnet", "nuget", "msbuild", "fsharpc"},
			Files:    []string{"global.json", "Directory.Build.props"},
			Dirs:     []string{"~/.dotnet"},
		},
		{
			Name: "elixir", Description: "Erlang and Elixir: mix, hex, rebar3",
			Commands: []string{"elixir", "elixirc", "iex", "mix", "erl", "erlc", "escript", "rebar3"},
			Files:    []string{"mix.exs", "rebar.config"},
		},
		{
			Name: "gemini", Description: "Gemini CLI: a directory of the project's own, the login",
			Commands: []string{"gemini"},
		},
		{
			Name: "git", Description: "git: settings, and a worktree's or submodule's own git directory",
			Commands: []string{"git", "git-*", "tig", "lazygit", "pre-commit"},
			Files:    []string{".git"},
		},
		{
			Name: "go", Description: "Go: build and module caches, installed Go programs",
			Commands: []string{"go", "gofmt", "gopls", "golangci-lint", "staticcheck", "dlv", "goimports"},
			Files:    []string{"go.mod", "go.work"},
			Dirs:     []string{"${GOBIN:-${GOPATH:-~/go}/bin}", "~/.goenv/shims"},
		},
		{
			Name: "goose", Description: "goose: directories of the project's own, settings and keys",
			Commands: []string{"goose"},
		},
		{
			Name: "haskell", Description: "Haskell: GHC, cabal, stack, ghcup",
			Commands: []string{"ghc", "ghci", "ghc-*", "runghc", "cabal", "stack", "haskell-language-server*"},
			Files:    []string{"cabal.project", "stack.yaml", "package.yaml"},
			Dirs:     []string{"~/.ghcup/bin", "~/.cabal/bin"},
		},
		{
			Name: "jvm", Description: "Java, Kotlin, Scala: JDKs, Maven, Gradle, sbt",
			Commands: []string{"java", "javac", "jar", "jshell", "mvn", "mvnw", "mvnd", "gradle", "gradlew", "kotlin", "kotlinc", "scala", "scalac", "sbt", "cs"},
			Files:    []string{"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "build.sbt"},
			Dirs:     []string{"~/.jenv/shims"},
		},
		{
			Name: "local", Description: "programs in ~/.local/bin and ~/bin",
			Dirs: []string{"~/.local/bin", "~/bin"},
		},
		{
			Name: "managers", Description: "version managers: mise, asdf, proto, pkgx",
			Commands: []string{"mise", "rtx", "asdf", "proto", "pkgx"},
			Files:    []string{"mise.toml", ".mise.toml", ".tool-versions", ".prototools"},
			Dirs:     []string{"${MISE_DATA_DIR:-${XDG_DATA_HOME:-~/.local/share}/mise}", "${ASDF_DATA_DIR:-~/.asdf}", "${PROTO_HOME:-~/.proto}", "${PKGX_DIR:-~/.pkgx}"},
		},
		{
			Name: "nim", Description: "Nim: caches of the project's own",
			Commands: []string{"nim", "nimble"},
		},
		{
			Name: "nix", Description: "Nix: profiles and the evaluation cache, without the daemon",
			Commands: []string{"nix", "nix-*"},
			Files:    []string{"flake.nix", "shell.nix", "default.nix"},
			Dirs:     []string{"~/.nix-profile/bin"},
		},
		{
			Name: "node", Description: "Node.js: npm, pnpm, yarn, bun, deno and their caches",
			Commands: []string{"node", "nodejs", "npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "corepack", "bun", "bunx", "deno", "node-gyp", "tsc", "tsx"},
			Files:    []string{"package.json", "deno.json", "deno.jsonc"},
			Dirs:     []string{"${NVM_DIR:-~/.nvm}/versions", "${FNM_DIR:-${XDG_DATA_HOME:-~/.local/share}/fnm}", "${VOLTA_HOME:-~/.volta}", "${PNPM_HOME:-${XDG_DATA_HOME:-~/.local/share}/pnpm}", "${npm_config_prefix:-${NPM_CONFIG_PREFIX:-~/.npm-global}}/bin"},
		},
		{
			Name: "opencode", Description: "OpenCode: directories of the project's own, the login",
			Commands: []string{"opencode"},
		},
		{
			Name: "php", Description: "PHP with Composer",
			Commands: []string{"php", "php8*", "composer", "phpunit", "artisan"},
			Files:    []string{"composer.json"},
			Dirs:     []string{"~/.config/composer/vendor/bin", "~/.composer/vendor/bin"},
		},
		{
			Name: "python", Description: "Python: pyenv, pip, uv, poetry, pdm, pipx, conda and their caches",
			Commands: []string{"python", "python2", "python3", "python3.*", "pypy3", "pip", "pip3", "pipx", "uv", "uvx", "poetry", "pdm", "pytest", "tox", "nox", "hatch", "conda", "mamba", "ruff", "mypy", "ipython", "jupyter", "pre-commit", "twine", "virtualenv"},
			Files:    []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "uv.lock", "tox.ini"},
			Dirs:     []string{"${PYENV_ROOT:-~/.pyenv}", "${UV_TOOL_DIR:-${XDG_DATA_HOME:-~/.local/share}/uv/tools}", "${PIPX_HOME:-${XDG_DATA_HOME:-~/.local/share}/pipx}", "${CONDA_PREFIX:-~/miniconda3}"},
		},
		{
			Name: "ruby", Description: "Ruby: gem, bundler, rbenv, rvm",
			Commands: []string{"ruby", "irb", "gem", "bundle", "bundler", "rake", "rails", "rspec", "rubocop"},
			Files:    []string{"Gemfile", "Rakefile", ".ruby-version"},
			Dirs:     []string{"${RBENV_ROOT:-~/.rbenv}", "${rvm_path:-~/.rvm}"},
		},
		{
			Name: "rust", Description: "Rust: cargo's registry and git caches, rustup's toolchains",
			Commands: []string{"cargo", "cargo-*", "rustc", "rustup", "rustdoc", "rustfmt", "rust-analyzer", "rust-gdb", "cross"},
			Files:    []string{"Cargo.toml", "rust-toolchain.toml", "rust-toolchain"},
			Dirs:     []string{"${CARGO_HOME:-~/.cargo}/bin"},
		},
		{
			Name: "swift", Description: "Swift: SwiftPM, CocoaPods",
			Commands: []string{"swift", "swiftc", "xcodebuild", "pod", "swift-*"},
			Files:    []string{"Package.swift", "Podfile"},
		},
		{
			Name: "terraform", Description: "Terraform and OpenTofu",
			Commands: []string{"terraform", "tofu"},
			Files:    []string{".terraform.lock.hcl"},
		},
		{
			Name: "zig", Description: "Zig: a cache of the project's own",
			Commands: []string{"zig", "zls"},
			Files:    []string{"build.zig"},
		},
	}
}

// isPreset reports whether a preset of that name is built in.
func isPreset(name string) bool {
	for _, p := range presetTable() {
		if p.Name == name {
			return true
		}
	}
	return false
}

// isAgentPreset says whether a preset is a coding agent's.
func isAgentPreset(name string) bool {
	switch name {
	case "aider", "claude", "codex", "copilot", "cursor", "gemini", "goose", "opencode":
		return true
	}
	return false
}
