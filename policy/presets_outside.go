package policy

import (
	"slices"
	"strings"
)

// outside answers, for a path that presets make writable, what programs
// outside read, execute or trust of it, and when. A test asks for an answer to
// each; nothing reads the table while a command is started.
type outside struct {
	paths []string // as the presets have them; "/*" at the end stands for each directory there
	trust string
	own   string // the flags that give a command a cache of its own instead; "" where none is needed
}

// outsideTable is the whole table.
func outsideTable() []outside {
	return slices.Concat(outsideNative(), outsideJVM(), outsideScripts())
}

// outsideNative is the part for languages that are compiled.
func outsideNative() []outside {
	return []outside{
		{
			[]string{"~/.ccache/*"},
			"ccache, where this directory exists, does with it what is said of the next one",
			`--env CCACHE_DIR="$PWD/.cache/ccache" --deny ~/.ccache`,
		},
		{
			[]string{"${CCACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/ccache}/*", "${CCACHE_DIR:-~/Library/Caches/ccache}/*"},
			"compilations outside take an object file from it when all their inputs have its hash. ccache.conf, which names programs, lies above",
			`--env CCACHE_DIR="$PWD/.cache/ccache"`,
		},
		{
			[]string{"${SCCACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/sccache}", "${SCCACHE_DIR:-~/Library/Caches/Mozilla.sccache}"},
			"compilations outside take an object file from it when all their inputs have its hash",
			`--env SCCACHE_DIR="$PWD/.cache/sccache"`,
		},
		{
			[]string{"${GOMODCACHE:-${GOPATH:-~/go}/pkg/mod}"},
			"builds outside compile the unpacked sources as they are (`go mod verify` compares them), run the toolchain that a go.mod names, and start git in cache/vcs where a module comes straight from a repository",
			`--env GOMODCACHE="$PWD/.cache/mod"`,
		},
		{
			[]string{"${GOPATH:-~/go}/pkg/sumdb"},
			"nothing unchecked: the checksum database's last state is signed",
			"",
		},
		{
			[]string{"${GOCACHE:-${XDG_CACHE_HOME:-~/.cache}/go-build}", "${GOCACHE:-~/Library/Caches/go-build}"},
			"builds outside link what is compiled in it, and go run, go tool and go test start it, when all inputs have its hash",
			`--env GOCACHE="$PWD/.cache/go"`,
		},
		{
			[]string{
				"${GOLANGCI_LINT_CACHE:-${XDG_CACHE_HOME:-~/.cache}/golangci-lint}", "${STATICCHECK_CACHE:-${XDG_CACHE_HOME:-~/.cache}/staticcheck}", "${XDG_CACHE_HOME:-~/.cache}/gopls",
				"${GOLANGCI_LINT_CACHE:-~/Library/Caches/golangci-lint}", "${STATICCHECK_CACHE:-~/Library/Caches/staticcheck}", "~/Library/Caches/gopls",
			},
			"linters and editors outside show its findings; none is executed",
			"",
		},
		{
			[]string{"${CARGO_HOME:-~/.cargo}/registry", "${CARGO_HOME:-~/.cargo}/git"},
			"builds outside compile the unpacked crates in it as they are, build scripts included",
			`--env CARGO_HOME="$PWD/.cache/cargo"`,
		},
		{
			[]string{"${CARGO_HOME:-~/.cargo}/.package-cache", "${CARGO_HOME:-~/.cargo}/.package-cache-mutate"},
			"cargo outside waits for the locks on it",
			"",
		},
		{
			[]string{"${CP_CACHE_DIR:-~/Library/Caches/CocoaPods}"},
			"pod install outside copies the unpacked pods in it into projects as they are, and Xcode builds them",
			`--env CP_CACHE_DIR="$PWD/.cache/pods"`,
		},
	}
}

// outsideJVM is the part for Java and its relatives, and the project's own cache.
func outsideJVM() []outside {
	return []outside{
		{
			[]string{"${GRADLE_USER_HOME:-~/.gradle}/caches"},
			"Gradle builds outside run the plugins, compiled build scripts and dependencies in it as they are",
			`--env GRADLE_USER_HOME="$PWD/.cache/gradle"`,
		},
		{
			[]string{"$ZSBX_CACHE"},
			"nothing: only commands under zsbx in this working directory are pointed there",
			"",
		},
		{
			[]string{"~/.m2/repository"},
			"Maven builds outside run the plugins and use the dependencies in it as they are; so do Gradle's and sbt's that name mavenLocal",
			`--env MAVEN_ARGS="-Dmaven.repo.local=$PWD/.cache/m2" --deny ~/.m2/repository`,
		},
		{
			[]string{"~/.m2/build-cache"},
			"Maven builds outside that use its build cache take outputs from it when their inputs have its hash",
			"",
		},
		{
			[]string{"~/.ivy2/cache", "~/.ivy2/local"},
			"sbt and Ivy builds outside use what is in it as it is",
			"",
		},
		{
			[]string{"${COURSIER_CACHE:-${XDG_CACHE_HOME:-~/.cache}/coursier/v1}", "${COURSIER_CACHE:-~/Library/Caches/Coursier/v1}"},
			"builds outside, and programs that `cs install` made, use the jars in it as they are",
			`--env COURSIER_CACHE="$PWD/.cache/coursier"`,
		},
	}
}

// outsideScripts is the part for Node.js, Python and Ruby.
func outsideScripts() []outside {
	return []outside{
		{
			[]string{"${npm_config_cache:-${NPM_CONFIG_CACHE:-~/.npm}}/_cacache"},
			"npm outside takes packages from it, each compared with the hash that a lock file or the registry's answer has; the answers are in it too, so that an install without a lock file trusts it",
			`--env npm_config_cache="$PWD/.cache/npm"`,
		},
		{
			[]string{"${npm_config_cache:-${NPM_CONFIG_CACHE:-~/.npm}}/_logs", "${XDG_STATE_HOME:-~/.local/state}/pnpm"},
			"nothing: logs, and when pnpm last looked for a new version",
			"",
		},
		{
			[]string{"${YARN_CACHE_FOLDER:-${XDG_CACHE_HOME:-~/.cache}/yarn}", "${YARN_CACHE_FOLDER:-~/Library/Caches/Yarn}"},
			"yarn 1 outside copies the unpacked packages in it into projects as they are",
			`--env YARN_CACHE_FOLDER="$PWD/.cache/yarn"`,
		},
		{
			[]string{"${npm_config_devdir:-${XDG_CACHE_HOME:-~/.cache}/node-gyp}", "${npm_config_devdir:-~/Library/Caches/node-gyp}"},
			"builds of native add-ons outside compile with the headers in it as they are",
			`--env npm_config_devdir="$PWD/.cache/node-gyp"`,
		},
		{
			[]string{"${MYPY_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/mypy}", "${RUFF_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/ruff}", "${XDG_CACHE_HOME:-~/.cache}/rubocop_cache"},
			"linters outside show its findings; none is executed",
			"",
		},
		{
			[]string{"${XDG_CACHE_HOME:-~/.cache}/matplotlib"},
			"Python programs outside read from it which fonts there are",
			"",
		},
		{
			[]string{
				"${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/pip}/http-v2", "${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/pip}/wheels",
				"${PIP_CACHE_DIR:-~/Library/Caches/pip}/http-v2", "${PIP_CACHE_DIR:-~/Library/Caches/pip}/wheels",
			},
			"pip outside installs wheels from it that were built here as they are, and from 23.3 on downloads in it compared with the index's answer, which may be in it too; --require-hashes does not trust it",
			`--env PIP_CACHE_DIR="$PWD/.cache/pip"`,
		},
		{
			[]string{"${POETRY_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/pypoetry}/artifacts", "${POETRY_CACHE_DIR:-~/Library/Caches/pypoetry}/artifacts"},
			"poetry outside takes wheels from it, compared with the lock file, when it installs",
			`--env POETRY_CACHE_DIR="$PWD/.cache/poetry"`,
		},
		{
			[]string{"~/.bundle/cache", "${XDG_CACHE_HOME:-~/.cache}/bundle"},
			"Bundler outside installs gems and compiled extensions from it, gems compared with the lock file's checksums where it has any",
			"",
		},
	}
}

// outsideOf is the answer for a path of a preset, nil for none.
func outsideOf(p string) *outside {
	table := outsideTable()
	for i := range table {
		for _, q := range table[i].paths {
			dir, each := strings.CutSuffix(q, "/*")
			if q == p || each && strings.HasPrefix(p, dir+"/") && !strings.Contains(p[len(dir)+1:], "/") {
				return &table[i]
			}
		}
	}
	return nil
}
