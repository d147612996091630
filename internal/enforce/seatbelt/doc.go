// Package seatbelt writes the profile for macOS's sandbox. A profile denies everything, then
// allows what the policy allows. It closes services through which a command could act outside.
//
// The package turns data into text. It has no build tag, and tests evaluate profiles on every
// system. internal/fork and internal/libsystem apply them.
package seatbelt
