package track

// look finds out what lives of the sessions, with one snapshot for all.
func look(all []Info, fs []*found) error {
	host, boot, ns, err := machine()
	if err != nil {
		return err
	}
	t, err := readTable()
	if err != nil {
		return err
	}
	children := t.children()
	var m members // read only if a session has no keeper: it costs a file for each process
	for n := range all {
		f := fs[n]
		if f == nil {
			continue
		}
		here := f.place(host, boot, ns)
		if !t.has(f.holder.Keeper) {
			f.word = readState(f.state) // its last word may have come after the first look
		}
		if here == present {
			if m == nil && !f.empty() && (f.info().Record.Exec || !t.has(f.holder.Keeper)) {
				m = readMembers(t)
			}
			all[n].Procs = f.procsIn(t, children, m)
			fill(all[n].Procs)
		}
		all[n].Life = life(f, here, here == present && t.has(f.holder.Keeper), len(all[n].Procs) > 0)
	}
	return nil
}
