package sandbox

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/job"
)

// forwarded are the signals that are passed on to the command. Those that stop
// and continue are not: the terminal sends them to all of its foreground
// process group, to which the command belongs.
func forwarded() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	}
}

// listen starts to receive the signals to be passed on, except those that this
// process's caller had it ignore. It is called before the command runs: this process
// must not die of a signal that the command handles.
func listen() chan os.Signal {
	signals := make(chan os.Signal, 16)
	var wanted []os.Signal
	for _, s := range forwarded() {
		if !signal.Ignored(s) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) > 0 { // without any, Notify would take all
		signal.Notify(signals, wanted...)
	}
	return signals
}

// startTime is how long signals are kept for a command that is being started. Then they
// end this process: the command's file system may hang.
const startTime = time.Second

// passing passes signals on to a command (Options.Job).
type passing struct {
	over chan struct{} // run returns when something comes from here

	mu      sync.Mutex // guards what follows
	began   time.Time
	started bool
	early   []syscall.Signal // came before the command was started
}

// listen begins to receive the signals, and to pass them on once the command is started. Until
// then they end this process, as they end any other.
func (c *Command) listen() {
	if c.signals != nil { // an earlier try
		return
	}
	c.signals = listen()
	over := make(chan struct{})
	c.pass = &passing{over: over, began: time.Now()}
	go func() {
		for {
			select {
			case <-over:
				return
			case s := <-c.signals:
				c.forward(s.(syscall.Signal))
			}
		}
	}()
}

// forward passes a signal on. SIGINT and SIGQUIT from the keyboard have already reached a
// command that has this process's terminal, and it must not see them twice. In the
// foreground each of them is taken for one from the keyboard.
func (c *Command) forward(s syscall.Signal) {
	keyboard := (s == syscall.SIGINT || s == syscall.SIGQUIT) && c.relay == nil && job.InForeground()
	if c.pass.starting(s, keyboard) || keyboard {
		return
	}
	c.passed.Store(int32(s))
	_ = c.s.Signal(s)
}

// starting reports whether the command is being started, and keeps the signal for it. On Linux
// the keeper has those from the keyboard. If the start takes too long, the signal ends this
// process.
func (p *passing) starting(s syscall.Signal, keyboard bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return false
	}
	if time.Since(p.began) > startTime {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
	} else if !keyboard {
		p.early = append(p.early, s)
	}
	return true
}

// passEarly passes on the signals that came before the command was started.
func (c *Command) passEarly() {
	if c.pass == nil {
		return
	}
	c.pass.mu.Lock()
	early := c.pass.early
	c.pass.early, c.pass.started = nil, true
	c.pass.mu.Unlock()
	for _, s := range early {
		c.forward(s)
	}
}

// endPassing ends what listen began. From here on lastOutput reads the signals.
func (c *Command) endPassing() {
	if c.pass != nil {
		c.pass.over <- struct{}{}
		c.pass = nil
	}
}

// deaf stops listening: a signal that comes now is for this process, which has little left
// to do. In the background it is left to Leave: the front passes on signals that both
// have received, and one may come late.
func (c *Command) deaf() {
	if c.signals != nil && !InBackground() {
		signal.Stop(c.signals)
	}
}

// reset gives the signals that were passed on their default action.
func reset() {
	for _, s := range forwarded() {
		signal.Reset(s)
	}
}
