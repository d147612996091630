package supervise

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/supervise/internal/job"
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

// notify makes signals receive those to be passed on, except the ones that this process's
// caller had it ignore.
func notify(signals chan os.Signal) {
	var wanted []os.Signal
	for _, s := range forwarded() {
		if !signal.Ignored(s) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) > 0 { // without any, Notify would take all
		signal.Notify(signals, wanted...)
	}
}

// startTime is how long signals are kept for a command that is being started. Then they
// end this process: the command's file system may hang.
const startTime = time.Second

// lateTime is how long after the command's end a signal from the keyboard was meant for the command.
// It goes to both, and on a busy machine this process may see the command end first.
const lateTime = 100 * time.Millisecond

// passing passes signals on to a command (Options.Job).
type passing struct {
	ready chan struct{} // closed when the signals are received
	stop  chan struct{} // receive returns when something comes from here

	mu      sync.Mutex // guards what follows
	began   time.Time  // when the command's start began; until then signals end this process
	started bool
	ended   time.Time        // when the command ended: from then on signals are for this process
	early   []syscall.Signal // came before the command was started
}

// listen begins to receive the signals, and to pass them on once the command is started. Until
// its start begins they end this process, as they end any other. Go's runtime makes three threads
// for it, so it is done while this process plans.
func (c *Command) listen() {
	c.signals = make(chan os.Signal, 16)
	c.pass = &passing{ready: make(chan struct{}), stop: make(chan struct{})}
	go c.receive(c.pass)
}

func (c *Command) receive(p *passing) {
	notify(c.signals)
	close(p.ready)
	for {
		select {
		case <-p.stop:
			return
		case s := <-c.signals:
			c.forward(p, s.(syscall.Signal))
		}
	}
}

// begin is called before the command runs: this process must not die of a signal that the
// command handles.
func (p *passing) begin() {
	<-p.ready
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() { // the first try
		p.began = time.Now()
	}
}

// forward passes a signal on. SIGINT and SIGQUIT from the keyboard have already reached a
// command that has this process's terminal, and it must not see them twice. In the
// foreground each of them is taken for one from the keyboard.
func (c *Command) forward(p *passing, s syscall.Signal) {
	if c.draining.Load() {
		c.broker.Hurry()
		return
	}
	keyboard := (s == syscall.SIGINT || s == syscall.SIGQUIT) && c.relay == nil && job.InForeground()
	if !p.takes(s, keyboard) || keyboard {
		return
	}
	c.passed.Store(int32(s))
	_ = c.s.Signal(s)
}

// takes reports whether there is a command that takes a signal. While it is being started, the
// signal is kept for it; on Linux the keeper has those from the keyboard. If the start takes too
// long, or the command has ended, the signal ends this process.
func (p *passing) takes(s syscall.Signal, keyboard bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := !p.ended.IsZero()
	switch {
	case ended && keyboard && time.Since(p.ended) < lateTime:
	case ended, !p.started && time.Since(p.began) > startTime:
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
	case !p.started && !keyboard:
		p.early = append(p.early, s)
	}
	return p.started && !ended
}

// passEarly passes on the signals that came before the command was started.
func (c *Command) passEarly() {
	p := c.pass
	if p == nil {
		return
	}
	p.mu.Lock()
	early := p.early
	p.early = nil
	p.started = true
	p.mu.Unlock()
	for _, s := range early {
		c.forward(p, s)
	}
}

// endPassing ends what listen began. From here on lastOutput reads the signals.
func (c *Command) endPassing() {
	if c.pass != nil {
		c.pass.stop <- struct{}{}
		c.pass = nil
	}
}

// stopListening restores the default action: from now on a signal ends this process. In the
// background Leave does it, because the front may still forward one.
func (c *Command) stopListening() {
	switch {
	case c.signals == nil || InBackground():
	case c.pass == nil:
		signal.Stop(c.signals)
	default: // quicker than signal.Stop
		c.pass.mu.Lock()
		if c.pass.ended.IsZero() {
			c.pass.ended = time.Now()
		}
		c.pass.mu.Unlock()
	}
}

// TakeSignals makes signals receive those that were passed on to the command, which has ended. done restores
// their default action.
func (c *Command) TakeSignals(signals chan os.Signal) (done func()) {
	notify(signals)
	if c.signals != nil {
		signal.Stop(c.signals)
	}
	return func() { signal.Stop(signals) }
}

// reset gives the signals that were passed on their default action.
func reset() {
	for _, s := range forwarded() {
		signal.Reset(s)
	}
}
