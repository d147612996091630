// Package answer says what a plan for Linux decides about an act: whether it is refused, by
// what, and with which error. Nothing else answers this question.
//
// It is pure and compiles on every system. It uses only the plan's data: Landlock rules,
// mounts, the seccomp filter, the broker's rules. The caller has to know what the plan does not
// decide, such as a file's mode and whether it exists. The errors and their precedence are
// those of Linux 6.18, whatever kernel the plan is for. Tests do each act and compare.
//
// It is exact in refusing by path, with two limits. Another name of the same inode may allow
// it, which only the kernel knows. A process of the session counts as one outside unless the
// act says otherwise.
package answer
