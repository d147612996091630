// Package selftest proves what a machine enforces by attacking it: each act is made
// by a confined process, which has to be refused, and by an unconfined one, which
// must not be. On Linux the acts are system calls, on macOS tools of the system.
//
// It makes plans and runs them; it decides nothing about them. What it can't try
// without harm it does not try.
package selftest
