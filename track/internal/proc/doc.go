// Package proc looks at processes: which one a number means, what is below it, and,
// on Linux, a descriptor by which it is signalled and no other. It reads proc(5) on
// Linux and sysctl(3) on macOS, always anew. It knows nothing of sessions, and does
// not decide who belongs to one.
//
// os.Process.WithHandle would open such a descriptor too. But os forks, once, to try
// whether it works, and where that fails, as it does while a session has filled the
// table of processes, it signals by numbers from then on.
package proc
