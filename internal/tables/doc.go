// Package tables has what the policy knows about the world, as text: the baseline's
// paths, places of secrets, places that programs outside run or trust, names of variables,
// what each preset is detected by, and the guard's lists. Presets are written in the same
// form. It is the same on every system.
//
// The text is for people. A test makes tables_gen.go from it, which is linked: reading the
// text at each start would take longer than any decision at the start.
//
// It reads the tables and decides nothing. What a table means is described where it is
// used.
package tables

//go:generate go test -run TestGenerated -update
