package enforce

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
)

// Counted returns gaps that are about to be refused or asked about, each with what is open if it is
// accepted, in numbers where there is something to count.
func (p *Plan) Counted(gaps []Gap) []Gap {
	if p == nil {
		return gaps
	}
	out := slices.Clone(gaps)
	for i := range out {
		out[i].GivesUp = p.givesUp(out[i].Name)
	}
	return out
}

// givesUp returns what a gap leaves open, or "" if its promise says it all.
func (p *Plan) givesUp(name string) string {
	h := p.Policy.Host()
	switch name {
	case GapDeny:
		if p.open > 0 {
			return fmt.Sprintf("%d of %d denied files", p.open, p.denied)
		}
	case GapSignals, GapPriorities:
		return counted(numbered(h, "/proc", h.UID != 0), "process", "processes")
	case GapPids:
		return counted(numbered(h, "/proc", false), "process", "processes")
	case GapTerminals:
		return counted(numbered(h, "/dev/pts", h.UID != 0), "terminal", "terminals")
	case GapHome:
		return counted(len(list(h, h.Home)), "entry of "+h.Home, "entries of "+h.Home)
	case GapUnixSockets, GapAbstractSockets:
		return counted(listening(h, name == GapAbstractSockets), "socket", "sockets")
	case GapIPC:
		n := len(list(h, "/dev/shm"))
		for _, kind := range []string{"shm", "sem", "msg"} {
			n += max(len(lines(h, "/proc/sysvipc/"+kind))-1, 0)
		}
		return counted(n, "segment, semaphore set or queue", "segments, semaphore sets and queues")
	case GapNetwork:
		return "every host"
	case GapTCPPorts:
		return "every TCP port of every host"
	}
	return ""
}

// counted returns "1 process" or "2 processes". It returns "" for none, since there may be some
// that are not seen.
func counted(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// list returns the names in a directory.
func list(h *host.Host, dir string) (names []string) {
	entries, _ := h.Entries(dir, -1) // harmless: what can't be listed is not counted
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// numbered counts the entries of a directory whose names are numbers. With mine it counts only
// those of this user.
func numbered(h *host.Host, dir string, mine bool) (n int) {
	for _, name := range list(h, dir) {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		if !mine || h.Look(dir+"/"+name).Stat.UID == h.UID {
			n++
		}
	}
	return n
}

// lines returns the lines of a file, or nil.
func lines(h *host.Host, file string) []string {
	if h.ReadFile == nil {
		return nil
	}
	text, err := h.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// listening counts the Unix sockets of proc(5) on which a program listens, by path or by abstract name.
func listening(h *host.Host, abstract bool) (n int) {
	for _, line := range lines(h, "/proc/net/unix") {
		const flags, name = 3, 7 // of the fields
		f := strings.Fields(line)
		if len(f) > name && f[flags] == "00010000" && strings.HasPrefix(f[name], "@") == abstract {
			n++
		}
	}
	return n
}
