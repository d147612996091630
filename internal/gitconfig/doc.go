// Package gitconfig parses the syntax of git-config(1) as git does. It is for every
// system. It opens no file, follows no include, and returns all values of a setting, of
// which the last one counts.
package gitconfig
