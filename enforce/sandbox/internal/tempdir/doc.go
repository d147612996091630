// Package tempdir makes and removes the private temporary directories of commands: in
// the directory for temporary files, of the user alone, with a directory "run" in it
// for XDG_RUNTIME_DIR. It decides nothing about what a command may do with it.
package tempdir
