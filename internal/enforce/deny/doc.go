// Package deny subtracts what a policy denies from what it allows. In a read-only tree it
// allows the other entries one by one. In a writable tree it says what must be masked. It
// reports what can't be denied at all.
//
// The package is pure, except that it reads directories through the policy's host. It mounts
// nothing, and can't affect names that are made later.
package deny
