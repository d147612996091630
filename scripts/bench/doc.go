// Package bench has only tests, which measure what zsbx costs, against a bare exec, a
// Go program that only forks and waits, and bubblewrap, all in one run.
//
// Programs take turns in a new random order each round, so that a machine
// whose speed drifts is the same to all of them; what counts is the ratio of
// the medians. Run as root it measures as an ordinary user (-uid).
package bench
