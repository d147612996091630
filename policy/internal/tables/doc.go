// Package tables holds what the policy knows of the world, as text: the baseline's
// paths, places of secrets, places that programs outside act upon, names of variables,
// what each preset is detected by, and the guard's lists. Presets are written in the same
// form. It is the same on every system.
//
// The text is for people. What is linked is tables_gen.go, which a test makes of it: to
// read it at each start would take longer than anything else that is decided there.
//
// It reads the tables and decides nothing: what a table means is said where it is
// used.
package tables

//go:generate go test -run TestGenerated -update
