package resolve

import (
	"slices"
)

// outside answers, for a path that presets make writable, what programs outside read, execute or
// trust there, and when. A test requires an answer for each path; nothing else uses the table.
type outside struct {
	paths []string // as the presets have them
	trust string
	own   string // the flags that give a command its own cache instead; "" if none is needed
}

// outsideTable is the whole table.
func outsideTable() []outside {
	return slices.Concat(outsideNative(), outsideJVM(), outsideScripts(), outsideAgents())
}

// outsideAgents is the part for coding agents. Their logins are not in it: if a command could put
// another account's login there, that account's organization could send settings, with hooks, to
// the agent outside.
func outsideAgents() []outside {
	return []outside{
		{
			[]string{"~/.aider/caches"},
			"aider outside reads models' names, sizes and prices from it",
			"",
		},
	}
}

// outsideNative is the part for languages that are compiled.
func outsideNative() []outside {
	return []outside{
		{
			[]string{"${GOMODCACHE:-${GOPATH:-~/go}/pkg/mod}"},
			"builds compile the sources unchecked (`go mod verify` checks), run toolchains from it and git in cache/vcs",
			`--env GOMODCACHE="$PWD/.cache/mod"`,
		},
		{
			[]string{"${GOPATH:-~/go}/pkg/sumdb"},
			"nothing: its content is signed",
			"",
		},
		{
			[]string{"${GOCACHE:-${XDG_CACHE_HOME:-~/.cache}/go-build}", "${GOCACHE:-~/Library/Caches/go-build}"},
			"builds link or run objects whose inputs have their hash",
			`--env GOCACHE="$PWD/.cache/go"`,
		},
		{
			[]string{"${CARGO_HOME:-~/.cargo}/registry", "${CARGO_HOME:-~/.cargo}/git"},
			"builds compile and run the crates unchecked",
			`--env CARGO_HOME="$PWD/.cache/cargo"`,
		},
		{
			[]string{"${CARGO_HOME:-~/.cargo}/.package-cache", "${CARGO_HOME:-~/.cargo}/.package-cache-mutate"},
			"cargo waits for its locks",
			"",
		},
		{
			[]string{"${CP_CACHE_DIR:-~/Library/Caches/CocoaPods}"},
			"`pod install` copies the pods unchecked",
			`--env CP_CACHE_DIR="$PWD/.cache/pods"`,
		},
	}
}

// outsideJVM is the part for Java and its relatives, and the project's own cache.
func outsideJVM() []outside {
	return []outside{
		{
			[]string{"${GRADLE_USER_HOME:-~/.gradle}/caches"},
			"builds run plugins and build scripts unchecked",
			`--env GRADLE_USER_HOME="$PWD/.cache/gradle"`,
		},
		{
			[]string{"$ZSBX_CACHE"},
			"nothing: only commands under zsbx in this directory use it",
			"",
		},
		{
			[]string{"~/.m2/repository"},
			"builds run plugins and dependencies unchecked; Gradle's and sbt's too with mavenLocal",
			`--env MAVEN_ARGS="-Dmaven.repo.local=$PWD/.cache/m2" --deny ~/.m2/repository`,
		},
		{
			[]string{"~/.m2/build-cache"},
			"builds with Maven's build cache take outputs whose inputs have their hash",
			"",
		},
		{
			[]string{"~/.ivy2/cache", "~/.ivy2/local"},
			"sbt and Ivy use it unchecked",
			"",
		},
		{
			[]string{"${COURSIER_CACHE:-${XDG_CACHE_HOME:-~/.cache}/coursier/v1}", "${COURSIER_CACHE:-~/Library/Caches/Coursier/v1}"},
			"builds and programs from `cs install` use the jars unchecked",
			`--env COURSIER_CACHE="$PWD/.cache/coursier"`,
		},
	}
}

// outsideScripts is the part for Node.js, Python and Ruby.
func outsideScripts() []outside {
	return []outside{
		{
			[]string{"${npm_config_cache:-${NPM_CONFIG_CACHE:-~/.npm}}/_cacache"},
			"npm checks packages by the lock file, and without one trusts the registry's answers in it. It appends through links, which get into it only without a mount namespace",
			`--env npm_config_cache="$PWD/.cache/npm"`,
		},
		{
			[]string{"${XDG_STATE_HOME:-~/.local/state}/pnpm"},
			"pnpm's last look for a new version",
			"",
		},
		{
			[]string{"${YARN_CACHE_FOLDER:-${XDG_CACHE_HOME:-~/.cache}/yarn}", "${YARN_CACHE_FOLDER:-~/Library/Caches/Yarn}"},
			"yarn 1 copies the packages unchecked",
			`--env YARN_CACHE_FOLDER="$PWD/.cache/yarn"`,
		},
		{
			[]string{"${npm_config_devdir:-${XDG_CACHE_HOME:-~/.cache}/node-gyp}", "${npm_config_devdir:-~/Library/Caches/node-gyp}"},
			"native add-ons are compiled with its headers, unchecked",
			`--env npm_config_devdir="$PWD/.cache/node-gyp"`,
		},
		{
			[]string{"${MYPY_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/mypy}", "${RUFF_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/ruff}", "${XDG_CACHE_HOME:-~/.cache}/gopls", "~/Library/Caches/gopls"},
			"findings are shown, nothing is run",
			"",
		},
		{
			[]string{
				"${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/pip}/http-v2", "${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/pip}/wheels",
				"${PIP_CACHE_DIR:-~/Library/Caches/pip}/http-v2", "${PIP_CACHE_DIR:-~/Library/Caches/pip}/wheels",
			},
			"pip installs wheels built here unchecked; from 23.3 on it checks downloads by the index's answer, which may be in it too. --require-hashes trusts neither",
			`--env PIP_CACHE_DIR="$PWD/.cache/pip"`,
		},
	}
}

// outsideOf returns the answer for a path of a preset, or nil.
func outsideOf(p string) *outside {
	table := outsideTable()
	for i := range table {
		if slices.Contains(table[i].paths, p) {
			return &table[i]
		}
	}
	return nil
}
