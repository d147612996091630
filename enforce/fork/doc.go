// Package fork starts one process, on Linux below a keeper.
//
// Between fork and exec the new process makes the system calls listed in
// Command.Steps, in order; the first that fails ends it, and Start reports
// which one. So a caller says as data what has to happen in the child
// (no_new_privs, a Landlock domain, a seccomp filter, a new session), and only
// this package has code that runs there.
//
// The process is not a child of the caller but of a keeper: a small fork of the
// caller that makes only raw system calls, is the subreaper (prctl(2),
// PR_SET_CHILD_SUBREAPER) of all that the command starts, kills it on request or
// when the caller is gone, and proves with ECHILD that nothing is left.
//
// On macOS there are neither Steps nor a keeper. Command.Sandbox is put on by a
// helper, this program executed once more; see SandboxMain.
//
// The package knows no Landlock, no seccomp, no sessions on disk. It does not
// search PATH. It sets no limits, but puts back that of open files, which Go's
// runtime has raised. It passes on only the signals of Command.Forward.
package fork
