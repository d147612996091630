package cmd

import "os"

// early is what a run prepares on another processor while it reads the policy:
// the file system's and the runtime's part of it takes as long.
type early struct {
	temp *tempDir
	err  error
	made chan struct{} // closed when temp and err are there

	signals   <-chan os.Signal
	listening chan struct{} // closed when signals is there
}

// prepare begins.
func (o *runFlags) prepare(a *app) *early {
	e := &early{made: make(chan struct{}), listening: make(chan struct{})}
	go func() {
		e.temp, e.err = o.newTemp(a)
		close(e.made)
		if !o.exec && !o.dryRun {
			e.signals = listen()
		}
		close(e.listening)
	}()
	return e
}

// into gives the temporary directory to c.
func (e *early) into(c *composed) (*tempDir, error) {
	<-e.made
	c.host.TempDir = e.temp.path
	return e.temp, e.err
}

// remove takes the temporary directory away again.
func (e *early) remove() {
	<-e.made
	e.temp.remove()
}

// heard gives the signals for the command. One that came before the command was
// started was meant for zsbx, which dies of it as it would have without a
// handler.
func (e *early) heard() <-chan os.Signal {
	<-e.listening
	select {
	case s := <-e.signals:
		e.remove()
		dieBy(s)
	default:
	}
	return e.signals
}
