package track

import "slices"

// Report is what a reaping came to.
type Report struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Tracker Kind   `json:"tracker"`

	Killed  int      `json:"killed"`            // processes that ended after the killing began, where that was counted
	Methods []string `json:"methods,omitempty"` // what was used: "domain", "cgroup", "subtree", "walk", "group"

	// Proof says that nothing of the session is left, How why that is
	// certain. Without it, Unproved says what can't be known.
	Proof    bool   `json:"proof"`
	How      string `json:"how,omitempty"`
	Unproved string `json:"unproved,omitempty"`

	Survivors []Proc `json:"survivors,omitempty"` // what is known to be left
	Kept      bool   `json:"kept,omitempty"`      // the session goes on, as it was asked for
	Removed   bool   `json:"removed"`             // it is gone from the store
	Temp      string `json:"temp,omitempty"`      // Options.Temp: for the caller to remove once Removed

	Reached Reached `json:"-"` // by Session.Close; of what was kept, so far

	NotRemoved error `json:"-"` // why Session.Close could not take the session from the store
}

// Left reports whether something of the session is known to be left.
func (r *Report) Left() bool { return len(r.Survivors) > 0 || r.Kept }

// Done reports whether the session is certainly gone: what an exit status of 0
// means.
func (r *Report) Done() bool { return r.Proof && !r.Left() }

func (r *Report) prove(how string) { r.Proof, r.How, r.Unproved = true, how, "" }

// methods names the bits of KeeperState.Method.
func methods(bits uint32) []string {
	var m []string
	for i, name := range []string{"domain", "cgroup", "subtree"} {
		if bits&(1<<i) != 0 {
			m = append(m, name)
		}
	}
	return m
}

func (r *Report) addMethods(ms ...string) {
	for _, m := range ms {
		if !slices.Contains(r.Methods, m) {
			r.Methods = append(r.Methods, m)
		}
	}
}
