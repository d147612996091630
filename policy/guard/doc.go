// Package guard refuses command lines by word lists, before anything runs. It
// looks at words and at nothing else, on every system; what shells are given as
// a string it reads with a parser for shells.
//
// It is advice: whoever wants to get around it decodes a word, or writes it to
// a file. What a command can do is decided by the kernel's limits alone.
package guard
