// Package review shows what a layer would change: a summary for people, a listing, the difference line by
// line, JSON and an archive. It says which changes need a look before they are made real.
//
// Everything that it shows was named or written by the command, and is escaped. It opens files by
// descriptors of the layer's and the tree's directories, and follows no links. It changes nothing.
package review
