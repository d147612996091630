// Package tempdir makes and removes the private temporary directories of commands. They
// are in the directory for temporary files, only the user can access them, and each has
// a directory "run" for XDG_RUNTIME_DIR. The policy says what a command may do there.
package tempdir
