// Package deny takes what a policy denies out of what it allows. Inside a
// read-only tree it allows the other entries one by one; inside a writable tree it
// says what has to be masked; and it says what can't be denied at all.
//
// It is pure but for looking at files through the policy's host. It mounts
// nothing, and has no hold on names that are made later.
package deny
