// Package selftest proves what a machine enforces by attacking it. A confined process makes
// each attack and must be refused; an unconfined one makes the same and must succeed. On Linux
// the attacks are system calls, on macOS they use tools of the system.
//
// The package makes plans and runs them, but decides nothing about them. No attack could do
// harm.
package selftest
