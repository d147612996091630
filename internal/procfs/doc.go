// Package procfs reads files of proc(5), and parses three of them: /proc/PID/mountinfo,
// stat and status. The parsers compile on every system; only Linux has the files. It
// knows nothing of sessions.
package procfs
