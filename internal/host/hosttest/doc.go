// Package hosttest has machines for tests: one from a table, and one in a temporary directory.
package hosttest
