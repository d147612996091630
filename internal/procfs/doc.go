// Package procfs reads files of proc(5), and says what is in three of them:
// /proc/PID/mountinfo, stat and status. What it says of their content compiles on
// every system; only Linux has the files. It knows nothing of sessions.
package procfs
