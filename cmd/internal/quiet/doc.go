// Package quiet keeps Go's runtime from printing to zsbx's users, and from slowing zsbx
// down, on Linux.
//
//   - SIGQUIT and SIGABRT from outside end zsbx as they end any other program
//     (signal(7)). Go's own handlers print what all goroutines do.
//   - If the runtime cannot start, or later gets no thread, memory or descriptor, the
//     user reads one line with the reason, and the status is 125. Once a command runs it
//     is 137, because the command is killed when zsbx ends. Go by itself prints a
//     traceback and exits with 2.
//   - The runtime's monitor, a thread that wakes some ten thousand times a second, waits
//     for the first 10 ms. That saves about a twentieth of a start.
//   - The main goroutine's stack is as large as a run needs, from the beginning.
//
// It does not hide a bug of zsbx: a panic prints its traceback.
//
// All but the second must be done before other packages are initialised, which takes
// half of zsbx's start. So they are not functions to call but initialisers: Go initialises
// packages in the order of their import paths, and those first that import nothing. The
// second needs no initialisation at all.
package quiet
