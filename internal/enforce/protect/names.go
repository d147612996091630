package protect

import (
	"strings"
	"sync"
)

// projectGroup has names in a project that one kind of program runs or trusts without being asked
// to run the project: when somebody enters or opens the directory, starts an agent in it, or
// commits. A directory is protected with all that is in it. The last part of a name may have
// one "*", which stands for any characters.
type projectGroup struct {
	what  string // as in docs/protected.md
	why   string
	acts  string // what happens outside, for people: see Acts
	names []string
}

// projectGroups is the table, as of 2026-11-27. It leaves out what only advises an agent
// (AGENTS.md, CLAUDE.md, rules) and what the user's own build runs.
var projectGroups = []projectGroup{
	{"zsbx", "a policy for the next session",
		"the next session here reads it as its policy", []string{".zsbx.toml"}},
	{"shells",
		"direnv, mise and Shadowenv run what is in them at a prompt; asdf's and proto's shims find " +
			"programs through them",
		"a shell that enters this directory runs or trusts it", []string{
			".envrc", ".direnv/*.rc", "mise.*toml", ".mise*.toml", ".mise/config.*toml",
			"mise/config.*toml", ".config/mise*.toml", ".config/mise/*.toml", ".mise/conf.d", "mise/conf.d",
			".config/mise/conf.d", ".rtx.*toml", ".tool-versions", ".prototools", ".shadowenv.d",
		}},
	{"version control beside Git",
		"settings that name programs and hooks, and where more settings are, such as nested repositories; " +
			"Git's own store inside Jujutsu's",
		"version control takes programs or settings from it", []string{
			".hg/hgrc*", ".hg/requires", ".hg/sharedpath", ".sl/config", ".sl/requires", ".sl/sharedpath",
			".jj/repo/config.toml", ".jj/workspace-config.toml", ".jj/repo/store/git/config",
			".jj/repo/store/git/hooks", ".jj/repo/store/git_target", "_darcs/prefs/defaults",
			".pijul/config", ".lazygit.yml", ".gh-dash.yml",
		}},
	{"commit hooks", "what a commit runs, although it runs nothing else of the project",
		"a commit runs what it names", []string{
			".pre-commit-config.y*ml", "prek.toml", "lefthook*", ".lefthook*", ".config/lefthook*",
			".trunk/*.yaml", "captainhook.json", "grumphp.yml", "hk*.pkl", ".config/hk*.pkl", ".gitlint",
		}},
	{"VS Code",
		"tasks that run on opening, programs for settings, servers for agents; recommended extensions",
		"VS Code takes programs or settings from it", []string{
			".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json", ".vscode/mcp.json",
			".vscode/extensions*", ".vscode/c_cpp_properties.json", "*.code-workspace",
		}},
	{"JetBrains", "start-up tasks, file watchers, run configurations",
		"JetBrains' editors take programs from it", []string{
			".idea/workspace.xml", ".idea/startup.xml", ".idea/watcherTasks.xml",
			".idea/externalDependencies.xml", ".idea/runConfigurations", ".run",
		}},
	{"other editors", "tasks, language servers, commands on opening",
		"an editor that opens this directory takes programs or settings from it", []string{
			".zed/tasks.json", ".zed/settings.json", ".zed/debug.json", ".helix/config.toml",
			".helix/languages.toml", ".exrc", ".nvim.lua", ".nvimrc", ".vimrc", ".vim/coc-settings.json",
			"*.sublime-project", ".lite_project.lua",
		}},
	{"interpreters",
		"R, irb, Pry, ghci, OCaml, IEx, Octave and the debuggers of Perl and Python run them whenever they " +
			"are started in the directory",
		"an interpreter that is started in this directory runs it", []string{
			".Rprofile", ".Renviron", "*irbrc", "irb.rc", ".config/irb", ".pryrc", ".ghci", ".ocamlinit",
			".iex.exs", ".octaverc", ".perldb", ".pdbrc",
		}},
	{"development containers", "commands on the machine that starts the container",
		"the machine that starts the container runs its commands", []string{
			".devcontainer.json", ".devcontainer",
		}},
	{"agents' servers", "programs that any agent starts",
		"an agent that is started here runs what it names", []string{".mcp.json", ".lsp.json"}},
	{"Claude Code", "permissions, hooks, programs; commands, agents and skills may bring theirs",
		"Claude Code takes programs or permissions from it", []string{
			".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/commands",
			".claude/agents", ".claude/skills", ".claude/plugins", ".claude/launch.json",
		}},
	{"Cursor", "hooks, servers, permissions",
		"Cursor takes programs or permissions from it", []string{
			".cursor/mcp.json", ".cursor/hooks*", ".cursor/cli.json", ".cursor/sandbox.json",
			".cursor/environment.json", ".cursor/worktrees.json",
		}},
	{"Codex", "servers, permissions, hooks",
		"Codex takes programs or permissions from it", []string{
			".codex/config.toml", ".codex/hooks.json", ".codex/rules", ".codex/environments", ".codex/agents",
		}},
	{"Gemini CLI, Qwen Code", "servers, hooks, commands with a shell, variables",
		"Gemini CLI or Qwen Code takes programs or settings from it", []string{
			".gemini/settings.json", ".gemini/.env", ".gemini/hooks", ".gemini/commands", ".gemini/extensions",
			".gemini/policies", ".qwen/settings.json", ".qwen/.env", ".qwen/hooks", ".qwen/commands",
			".qwen/extensions",
		}},
	{"OpenCode, Kilo", "servers, permissions; plugins and tools are loaded at the start",
		"OpenCode or Kilo takes programs or settings from it", []string{
			"opencode.json", "opencode.jsonc", ".opencode", "kilo.json", "kilo.jsonc", ".kilo",
			".kilocode/mcp.json",
		}},
	{"Copilot",
		"hooks, servers, settings that name both; extensions are loaded at the start; agents and skills " +
			"may bring servers",
		"Copilot takes programs or settings from it", []string{
			".github/copilot", ".github/hooks", ".github/mcp.json", ".github/lsp.json",
			".github/extensions", ".github/agents", ".github/skills", ".copilot/mcp-config.json",
		}},
	{"other agents",
		"servers, hooks, permissions, commands for checks; skills that several share, and that may bring " +
			"servers; extensions; Codebuff loads any script in .agents",
		"an agent that is started here takes programs or settings from it", []string{
			".agents", ".vibe", ".amazonq", ".grok", ".pi/settings.json", ".pi/extensions",
			".openhands/setup.sh", ".openhands/hooks.json", ".roo/mcp.json", ".roo/tools", ".kiro/settings",
			".kiro/hooks", ".kiro/agents", ".clinerules/hooks", ".windsurf/hooks.json",
			".windsurf/mcp_config.json", ".amp/settings.json", ".amp/plugins", ".factory/settings.json",
			".factory/mcp.json", ".factory/hooks", ".factory/commands", ".continue", ".aider.conf.yml",
			".crush.json", "crush.json", ".junie/mcp", ".trae/mcp.json", ".augment/settings.json",
		}},
}

// projectNames returns all names in the table and reportedNames. Patterns come last, since they
// can match any number of files.
var projectNames = sync.OnceValue(func() []string {
	names := make([]string, 0, 160)
	patterns := make([]string, 0, 32) // enough for all
	add := func(all []string) {
		for _, n := range all {
			if strings.Contains(n, "*") {
				patterns = append(patterns, n)
			} else {
				names = append(names, n)
			}
		}
	}
	add(reportedNames)
	for _, g := range projectGroups {
		add(g.names)
	}
	return append(names, patterns...)
})

// reportedNames are files whose changes are only reported, since version control, R and people's
// own programs write them. The first line tells the shims of rustup, jenv, plenv and older rbenv,
// and the prompts of mise and fnm, where programs are. Mercurial's .hgsub names nested
// repositories. Fossil's files name the database whose settings name programs. Agents outside take
// variables such as NODE_OPTIONS from .env, and autoenv runs what is in its files. R runs .First
// from .RData when it starts.
var reportedNames = []string{
	"rust-toolchain", "rust-toolchain.toml", ".*-version", ".python-versions", ".nvmrc", ".sdkmanrc", ".yvmrc",
	".hgsub", ".fslckout", "_FOSSIL_", ".env", ".env.local", ".autoenv*", ".RData",
}
