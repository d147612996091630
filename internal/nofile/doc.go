// Package nofile knows the limit of open files that zsbx was started with.
//
// When package syscall is initialised, it raises the soft limit (RLIMIT_NOFILE,
// getrlimit(2)) to the hard one. It restores the limit only for what it starts itself.
// A command started by other means would get the raised limit, with which programs fail
// that use select(2) or that close all possible descriptors. So this package reads the
// limit before. It imports nothing, and packages are initialised in the order of their
// import paths as far as their imports allow
// (https://go.dev/ref/spec#Package_initialization).
//
// It changes nothing, and is for Linux only.
package nofile
