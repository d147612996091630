// Package job is what this process does as a shell's job that stands for the
// command: it stops when the command has stopped, asks which job has the terminal,
// and hands it over. Linux and macOS; it knows nothing of sessions.
package job
