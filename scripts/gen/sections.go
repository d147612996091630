package main

// section is a part of a page that the command itself does not carry.
type section struct {
	title string
	items []item
}

// item is a term and what it means; without a term it is paragraphs.
type item struct{ term, text string }

// sections are those of each command's page.
func sections() map[string][]section {
	failed := item{"125", "zsbx itself failed, or refused: a mistake on the command line or in a policy, or a promise that this machine can't keep."}
	plain := []section{{"EXIT STATUS", []item{{"0", "All went well."}, failed}}}
	return map[string][]section{
		"zsbx": {
			{"EXIT STATUS", []item{{"", "See the pages of the commands. 125 always means that zsbx itself failed or refused."}}},
			{"ENVIRONMENT", []item{
				{"XDG_CONFIG_HOME", "Where zsbx/policy.toml and zsbx/settings.toml are; ~/.config by default."},
				{"XDG_STATE_HOME", "Where sessions and trusted project policies are recorded; ~/.local/state by default."},
				{"NO_COLOR", "When it is not empty, nothing is coloured."},
			}},
			{"FILES", files()},
		},
		"run": {
			{"NAMESPACES", []item{
				{"", "On Linux COMMAND runs in its own mount and IPC namespaces. What it may not write is read-only there, and it has its own /dev/shm and /dev/pts. For an ordinary user that takes a user namespace, in which files of other owners seem to belong to nobody, and supplementary groups have no names. Where there is none, a warning says what is not enforced. For a program that can't live with it, type --allow-gap metadata --allow-gap ipc --allow-gap terminals; it works if nothing is denied or protected in a writable tree."},
			}},
			{"EXIT STATUS", []item{
				{"", "The exit status of COMMAND, or:"},
				{"1", "COMMAND ended with 0, but zsbx failed after it: its output could not be written, or not everything that it started could be ended. The message says which. If COMMAND ended with another status, that is the exit status, and the message is printed as well."},
				{"124", "COMMAND was ended by --timeout, or ended with 0 and nobody took all of its output within that time."},
				{"125", "COMMAND was not run, because zsbx itself failed, or refused: a mistake on the command line or in a policy, or a promise that this machine can't keep."},
				{"126", "COMMAND was found but can't be executed, or the policy does not allow it."},
				{"127", "COMMAND was not found."},
				{"128+N", "COMMAND was ended by signal N. 137: --max-output ended it, or, with a message, its keeper was killed from outside, and how COMMAND ended is not known. 141: it ended with 0, and its output went to a pipe that nobody reads. With a message: COMMAND had ended with 0, and the signal ended zsbx while the output was waiting for its reader."},
			}},
			{"LIMITS", []item{
				{"", "--timeout is time by the clock on the wall, from the start of COMMAND on. Time in which COMMAND or zsbx is stopped counts. Then COMMAND gets SIGTERM, and SIGCONT in case it is stopped. What is left of the session when COMMAND has ended, or when --kill-after is over, is killed. With --kill-after 0 COMMAND may take as long as it likes to end."},
				{"", "On Linux the session's keeper does that: a process that COMMAND can't reach, and that waits for nobody. A stopped zsbx, a stopped terminal or a reader who does not read changes nothing, and zsbx ends within seconds. A message that can't be written within one second is dropped. On macOS zsbx does it, and can't while it is stopped."},
				{"", "--max-output counts what COMMAND writes to its stdout and stderr, not what it writes to its terminal by name or by /dev/tty. It can't be used with --tty, --keep or --exec, and --timeout can't be used with --exec."},
			}},
			{"ENVIRONMENT", []item{
				{"PATH", "COMMAND is looked up in the PATH that it will have itself."},
				{"TMPDIR", "The private temporary directory is made there, or in /tmp when the name would be too long for sockets and /tmp can be written. On macOS it is made in the user's own directory, whatever TMPDIR says."},
				{"ZSBX_SESSION", "Set for COMMAND: the id of its session."},
				{"XDG_RUNTIME_DIR, TMPDIR, TMP, TEMP, TMPPREFIX", "Set for COMMAND: the private temporary directory."},
			}},
			{"FILES", files()},
		},
		"why": {
			{"WHAT IT SAYS", []item{
				{"", "One line for each thing that was refused: operation, path (or port, socket, process, system call), the error that COMMAND was given, program, and how often. Below it which rule refused it, or that none allows it, and what to type: a flag, and the line of a policy. * marks what looks like the cause. Places of secrets and the system's own directories get no such line. What file permissions refuse is counted, not listed. At most six are shown; --json and --explain-file have all."},
				{"", "It works on Linux 5.6 and later, where the filter can have a supervisor: not inside another zsbx session. COMMAND is slower meanwhile, most where it opens many files that it may not."},
			}},
			{"EXIT STATUS", []item{{"", "The exit status of COMMAND, as run has it."}, {"125", "COMMAND was not run: zsbx failed or refused, or what COMMAND is refused can't be seen here."}}},
			{"FILES", []item{{"$XDG_STATE_HOME/zsbx/last/", "The run that failed last in each directory: flags and words of the command, without the values of variables. For its user alone."}}},
		},
		"profile": plain,
		"check": {
			{"EXIT STATUS", []item{
				{"0", "Everything that was asked about is allowed; without questions: every promise of the policy can be kept here."},
				{"1", "Something is not allowed, or a promise can't be kept."},
				failed,
			}},
			{"FILES", files()},
		},
		"ps":         plain,
		"reap":       {{"EXIT STATUS", []item{{"0", "Nothing is left of the sessions."}, {"1", "Something is left, or it could not be proved that nothing is."}, failed}}},
		"log":        plain,
		"learn":      learned(),
		"init":       learned(),
		"import":     plain,
		"completion": plain,
		"version":    plain,
	}
}

// learned are the sections of learn and init.
func learned() []section {
	return []section{
		{"WHAT IS PROPOSED", []item{
			{"", "Presets first, then directories in which something is made, or much is refused below; never the home directory or what holds it, directories that programs share, places of secrets, what is on PATH or what programs outside act upon. What is refused in a run that succeeds is printed as a comment. Of a proposal n gives what it is made of, and w the directory above."},
		}},
		{"EXIT STATUS", []item{{"", "The exit status of COMMAND in the last run."}, {"125", "zsbx failed or refused, nothing was accepted, or what COMMAND is refused can't be seen here."}}},
		{"FILES", files()},
	}
}

// files are the files that zsbx reads and writes.
func files() []item {
	return []item{
		{"$XDG_CONFIG_HOME/zsbx/policy.toml", "The user's policy. It is part of every run."},
		{".zsbx.toml", "The project's policies: all of that name from the working directory up to the root of the outermost repository around it. One is used when zsbx check --trust=SHA256 has recorded its content, or when it only takes rights away."},
		{"$XDG_CONFIG_HOME/zsbx/settings.toml", "Preferences: color (auto, always, never) and track (the default of run --track)."},
		{"$XDG_STATE_HOME/zsbx", "Records of sessions, and of the project policies that are trusted; the audit log, in audit, where no other place is given."},
	}
}
