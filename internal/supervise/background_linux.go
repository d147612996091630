package supervise

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/supervise/internal/job"
	"github.com/zsbx/zsbx/internal/track"
)

// A session that is kept may need a process that answers its calls for as long as it
// lives. That must be an ancestor of its processes: with the Yama security module
// (kernel.yama.ptrace_scope) no other process may look into them. So a program that ends
// with the command, as zsbx run does, does not run the command itself. Its front starts
// the program once more, in the background, and acts for that process until it reports
// how the command ended. The background process then stays until nothing of the session
// is left.

// leadFile is the descriptor by which the background process reports to the front.
const leadFile = 3

// InBackground reports whether Front started this program.
func InBackground() bool { return len(os.Args) > 1 && os.Args[1] == Background }

// Front starts this program in the background, with args after Background, and
// waits until it calls Leave or ends. Signals are passed on, and this process stops
// and continues as the other one does.
func Front(args []string) (Outcome, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Outcome{}, fmt.Errorf("pipe: %w", err)
	}
	defer r.Close()
	reserveThreads(frontThreads)
	signals := make(chan os.Signal, 16)
	notify(signals)
	p, err := os.StartProcess("/proc/self/exe", append([]string{os.Args[0], Background}, args...),
		&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, w}})
	w.Close()
	if err != nil {
		return Outcome{}, fmt.Errorf("starting the process that stays with the session: %w", err)
	}
	go func() {
		for s := range signals {
			if s != syscall.SIGINT && s != syscall.SIGQUIT || !job.InForeground() {
				_ = p.Signal(s)
			}
		}
	}()
	go followStops(p)
	var o [2]int32
	if binary.Read(r, binary.NativeEndian, &o) != nil {
		err := fmt.Errorf("%w: the process that stays with its session is gone", ErrLost)
		return Outcome{}, &Error{Code: CodeSession, Err: err}
	}
	return Outcome{int(o[0]), syscall.Signal(o[1])}, nil
}

// followStops stops this process whenever p was stopped, until p ends.
func followStops(p *os.Process) {
	for {
		var ws syscall.WaitStatus
		switch _, err := syscall.Wait4(p.Pid, &ws, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
			continue
		case err != nil, !ws.Stopped():
			return
		case job.IsStopped(p.Pid) && job.HasTerminal():
			job.StopSelf(func() bool { return !job.IsStopped(p.Pid) })
		}
		_ = p.Signal(syscall.SIGCONT)
	}
}

// Leave gives up the standard files and the terminal, and makes the front end with this
// outcome. The front gets that even if the rest fails.
func Leave(o Outcome) error {
	unix.CloseOnExec(leadFile)
	lead := os.NewFile(leadFile, "front")
	defer lead.Close()
	_ = os.WriteFile("/proc/self/comm", []byte(track.BrokerName), 0)
	_, _ = unix.Setsid() // can't fail: it is not a group's leader
	err := os.Chdir("/")
	none, _ := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0) // /dev/null may be missing
	for fd := range 3 {
		if unix.Dup3(none, fd, 0) != nil {
			_ = unix.Close(fd) // no descriptor was free
		}
	}
	_ = unix.Close(none)
	// The front may have been killed.
	_ = binary.Write(lead, binary.NativeEndian, [2]int32{int32(o.Status), int32(o.Signal)})
	reset()
	signal.Ignore(syscall.SIGHUP)
	return err
}
