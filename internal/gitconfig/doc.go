// Package gitconfig reads the syntax of git-config(1), as git does: text, on every
// system. It opens no file, follows no include, and does not say which of two values
// of a setting counts, which is the last.
package gitconfig
