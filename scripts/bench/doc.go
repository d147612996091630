// Package bench has only tests. They measure what zsbx costs, compared with a bare exec,
// a Go program that only forks and waits, and bubblewrap, all in one run.
//
// Programs take turns in a new random order each round, so that a machine whose speed
// drifts is fair to all of them. The ratio of the medians counts. As root it measures as
// an ordinary user (-uid).
package bench
