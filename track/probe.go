package track

// Probe finds out what this machine offers for tracking, by doing: it makes a
// control group and removes it again, and asks the user's service manager. It
// takes milliseconds; Begin looks only at what it needs.
func Probe() Caps { return probe() }
