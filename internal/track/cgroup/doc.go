// Package cgroup makes, limits, kills and removes the control group of a session, through
// cgroupfs version 2 (cgroups(7)). Where the user may not make one, it gets a scope from the
// user's systemd over D-Bus (org.freedesktop.systemd1(5)). It is for Linux, but the parsers
// compile everywhere.
//
// A group is identified by its path and inode. A record's group is not trusted before Group.Of
// was asked: a session's group has the session's name.
package cgroup
