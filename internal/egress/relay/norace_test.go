//go:build !race

package relay

// raced is whether the race detector is on: it makes stacks larger.
const raced = false
