// Package procfs reads what three files of proc(5) say: /proc/PID/mountinfo,
// stat and status. It takes their content, opens nothing, and compiles on every
// system; only Linux has the files.
package procfs
