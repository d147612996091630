// Package tree reads policy files into trees, from TOML and from JSON, with the same
// result, so that the two cannot mean different things. Every value has its position in
// the file. It is the same on every system.
//
// It finds what is not TOML or JSON, keys that are given twice, and characters that hide
// something from a reader of the file. Package policy knows which keys there are, and
// what they mean.
package tree
