// Package answer says what a plan for Linux decides about an act: whether it is
// refused, by what, and with which error. It is the one place that is asked.
//
// It is pure, compiles on every system, and goes by the plan as data: Landlock
// rules, mounts, the seccomp filter, the broker's rules. What the plan does not
// decide (the modes of files, whether there is one) it leaves to the caller. On
// whatever kernel the plan is for, the errors are those of Linux 6.18 and the
// order in which they come there; tests do each act and compare.
//
// It is exact where it refuses by path. An inode with several names may be
// allowed by another one, which only the kernel can tell; a process of the
// session is not told from one outside unless the act says so.
package answer
