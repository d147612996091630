package fork

// Forwarding reports whether the signals of Command.Forward are passed on.
func (p *Process) Forwarding() bool { return p.forwarding }
