// Package seatbelt writes the profile for macOS's sandbox: everything denied, and
// then what the policy allows, with the services closed through which a command
// could act from outside.
//
// It is text from data, without a build tag, and is evaluated by tests on every
// system. It applies nothing: enforce/fork and enforce/libsystem do.
package seatbelt
