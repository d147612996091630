// Package compose adds up the policy of one run: the baseline, the presets that
// were asked for or that fit the command, the user's own policy, the project's,
// policy files, and what the caller asks for, each stronger than the one before.
//
// A project's policy is a stranger's file. It counts when the user has trusted
// exactly this content at exactly this place, or when it only takes away; the
// records of that are here as well.
//
// The package works on every system, and reads no files but policies, records of
// trust, and what package resolve looks at for the presets. It enforces nothing.
package compose
