// Package cgroup makes, bounds, kills and removes the control group of a session, by
// cgroupfs of version 2 (cgroups(7)), or, where the user may make none, by a scope
// of the user's systemd, over D-Bus (org.freedesktop.systemd1(5)). It is Linux's;
// what reads the kernel's files compiles everywhere.
//
// A group is found again by its path and inode. What a record says of it is not
// believed before Ref.Of was asked: a session's group has the session's name.
package cgroup
