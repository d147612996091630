// Package tempdir makes, removes and finds the private temporary directories of
// commands: in the directory for temporary files, of the user alone, with a
// directory "run" in it for XDG_RUNTIME_DIR. While one is in use it is locked
// (flock(2)), so that one which a killed run left can be told from it. It decides
// nothing about what a command may do with it.
package tempdir
