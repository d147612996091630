package fork

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// execSelf makes the steps in the calling thread, from which execve(2) then
// makes the whole process: the others end.
func execSelf(c *Command) error {
	if err := makeSteps(StageBefore, c.Before); err != nil {
		return err
	}
	if c.Dir != "" {
		if err := syscall.Chdir(c.Dir); err != nil {
			return &StepError{Stage: StageCommand, Name: "chdir to " + c.Dir, Errno: err.(syscall.Errno)}
		}
	}
	for i, f := range c.Files {
		if f != nil && f.Fd() != uintptr(i) {
			if err := unix.Dup3(int(f.Fd()), i, 0); err != nil {
				return fmt.Errorf("dup3: %w", err)
			}
		}
	}
	closeOnExec(descriptors())
	if err := makeSteps(StageCommand, c.Steps); err != nil {
		return err
	}
	err := syscall.Exec(c.Path, c.Args, c.Env)
	runtime.KeepAlive(c)
	errno, _ := err.(syscall.Errno)
	return &StepError{Stage: StageExec, Name: c.Path, Errno: errno}
}

// makeSteps makes the steps in this thread.
func makeSteps(stage Stage, steps []Step) error {
	for i := range steps {
		s := &steps[i]
		s.args(steps, i)
		r, _, errno := syscall.RawSyscall6(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Args[3], s.Args[4], s.Args[5])
		s.result = r
		switch {
		case errno != 0 && !s.MayFail:
			return &StepError{Stage: stage, Tag: s.Tag, Name: s.Name, Errno: errno}
		case s.Same.differs():
			return &StepError{Stage: stage, Tag: s.Tag, Name: s.Name, Errno: unix.ESTALE}
		case errno == 0 && s.Out != nil:
			*s.Out = r
		}
	}
	return nil
}
