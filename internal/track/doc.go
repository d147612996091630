// Package track keeps sessions. A session is a command with all the processes that it started,
// however they detached themselves. Any later process can find and kill them until none is
// left.
//
//	s, err := track.Begin(track.Options{Name: "build"})
//	err = s.Start(&fork.Command{Path: "/usr/bin/make", Args: []string{"make"}, Env: os.Environ()})
//	status, err := s.Wait()
//	report, err := s.Close(ctx)
//
//	store, err := track.OpenStore()          // in another process, or after a crash of the first
//	report, err := store.Reap(ctx, "build")  // report.Done(): certain that nothing is left
//
// A session's tracker keeps its processes together. It is the strongest that the machine has
// (Best): see Kind.
//
// On Linux a keeper process is between the caller and the command. It is the subreaper of all
// that the command starts (prctl(2), PR_SET_CHILD_SUBREAPER). It kills the session when asked
// to or when its caller dies. It reports that a session is empty only after wait4(2) returned
// ECHILD. That report is the proof in Report.Proof. If the keeper itself was killed, an empty
// control group is proof, too. Otherwise Reap kills what it can still recognize and reports
// that nothing is proved.
//
// A command that is only tracked is not restricted, and a hostile one can escape.
// Options.Confined and Options.Scoped say that the command restricts itself.
//
// Package track knows no policies. It prints nothing, forwards no signals, and handles no
// terminals. It does not trust its store: it signals a process only through a descriptor
// (pidfd_open(2)), and only if it is the recorded process and is what the record says.
package track
