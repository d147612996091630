// Package procfs reads what two files of proc(5) say: /proc/PID/mountinfo and
// /proc/PID/stat. It takes their content, opens nothing, and compiles on every
// system; only Linux has the files.
package procfs
