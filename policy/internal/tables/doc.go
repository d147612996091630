// Package tables holds what the policy knows of the world, as text that is embedded:
// the baseline's paths, places of secrets, places that programs outside act upon,
// names of variables, what each preset is detected by, and the guard's lists. Presets
// are written in the same form. It is the same on every system.
//
// It reads the tables and decides nothing: what a table means is said where it is
// used.
package tables
