// Package job makes this process a shell's job that acts for the command: it stops when
// the command has stopped, finds out which job has the terminal, and hands the terminal
// over. It is for Linux and macOS, and knows nothing of sessions.
package job
