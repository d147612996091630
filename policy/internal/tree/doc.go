// Package tree reads policy files into trees, from TOML and from JSON, with the same
// result, so that the two cannot mean different things. Every value knows where it
// stands. It is the same on every system.
//
// It finds what is no TOML or no JSON, what is given twice, and characters that hide
// something from whoever reads the file. What keys there are, and what they mean, is
// package policy's business.
package tree
