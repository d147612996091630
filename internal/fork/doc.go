// Package fork starts one process, on Linux below a keeper.
//
// Between fork and exec the new process makes the system calls in Command.Steps, in order. If
// one fails, the process ends and Start reports which one it was. So a caller says as data what
// must happen in the child (no_new_privs, a Landlock domain, a seccomp filter, a new session),
// and only this package has code that runs there.
//
// The process is a child of a keeper, not of the caller. The keeper is a small fork of the
// caller that makes only raw system calls. It is the subreaper (prctl(2),
// PR_SET_CHILD_SUBREAPER) of all that the command starts, kills it on request or when the
// caller is gone, and proves by ECHILD that nothing is left.
//
// On macOS there are neither Steps nor a keeper. A helper, which is this program executed
// again, applies Command.Sandbox; see SandboxMain.
//
// The package knows nothing of Landlock, seccomp or sessions on disk. It does not search PATH.
// It sets no limits, but it restores the limit of open files, which Go's runtime raises. It
// handles no signals of the caller.
package fork
