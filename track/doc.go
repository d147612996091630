// Package track keeps sessions: one for each command, with all the processes
// that it started, however they detached themselves, so that any later
// process can find and kill them until none is left.
//
//	s, err := track.Begin(track.Options{Name: "build"})
//	err = s.Start(&fork.Command{Path: "/usr/bin/make", Args: []string{"make"}, Env: os.Environ()})
//	status, err := s.Wait()
//	report, err := s.Close(ctx)
//
//	store, err := track.OpenStore()          // in another process, or after a crash of the first
//	report, err := store.Reap(ctx, "build")  // report.Done(): certain that nothing is left
//
// What holds the processes of a session is its tracker, the strongest that the
// machine has (Best): see Kind.
//
// On Linux a keeper process stands between the caller and the command. It is
// the subreaper of all that the command starts (prctl(2),
// PR_SET_CHILD_SUBREAPER), kills the session when it is told to or when its
// caller dies, and says that a session is empty only when wait4(2) has told it
// ECHILD. That word is the proof that Report.Proof is about. Where the keeper
// itself was killed, an empty control group is proof too; else Reap kills what
// it can still recognise and says that it proved nothing.
//
// A command that is only tracked is not restricted. A hostile one can get away.
// Options.Confined and Options.Scoped say that the command restricts itself.
//
// Package track knows no policies. It prints nothing, forwards no signals, and
// handles no terminals. It trusts nothing that it reads from its store: a
// process is signalled through a descriptor (pidfd_open(2)), and only if it is
// the one that was recorded and what the record says it is.
package track
