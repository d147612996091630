// Package object writes JSON objects. encoding/json would do, but its first use
// in a process takes 0.3 ms and more, and records are written in every run of
// zsbx.
package object
