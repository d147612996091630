// Package fingerprint says what the fingerprint of a session on macOS is, and
// which doors every profile with one shuts. Of two names of services, a profile of
// the session allows one to be looked up and denies the other. No other profile
// answers so, and a process under none is allowed both. So sandbox_check tells from
// outside, of any process, whether it belongs to the session, however it detached
// itself. Nothing on the disk changes the answers, and no command starts whose own
// process does not get them.
//
// The package writes text and asks nobody. Package enforce puts the fingerprint
// into its profiles, package fork checks it before a command runs, package track
// looks for it and starts commands with nothing but it.
package fingerprint
