// Package guard refuses command lines by word lists, before anything runs. It
// looks only at words, on every system. Strings that shells run are read with a
// parser for shells.
//
// It is advice: it can be avoided by decoding a word, or by writing it to a
// file. Only the kernel's limits decide what a command can do.
package guard
