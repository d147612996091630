//go:build !darwin

package tempdir

// User is the user's own directory for temporary files, "" for none.
func User() string { return "" }
