// Package nofile knows the limit of open files that zsbx was started with.
//
// Package syscall raises the soft limit (RLIMIT_NOFILE, getrlimit(2)) to the
// hard one while it is initialised, and puts it back only for what it starts
// itself. A command started by other means would get the raised limit, which
// programs that use select(2) or that close all possible descriptors do not
// bear. So this package asks before: it imports nothing, and packages are
// initialised in the order of their import paths as far as their imports allow
// (https://go.dev/ref/spec#Package_initialization).
//
// It changes nothing, and knows Linux only.
package nofile
