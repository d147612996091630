package track

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// limitPlace is where a group with limits is made: in a directory, or by the
// user's service manager.
type limitPlace struct {
	dir   string
	scope bool
}

// place finds one.
func (l Limits) place() (limitPlace, error) {
	dir, err := l.parent("zsbx-limits-" + strconv.Itoa(unix.Getpid()))
	if err == nil {
		return limitPlace{dir: dir}, nil
	}
	if fork.ShortageOf(err) == nil && !errors.Is(err, errNoCgroup2) {
		bus := pingUserManager()
		if bus == nil {
			return limitPlace{scope: true}, nil
		}
		err = fmt.Errorf("%w; %w", err, bus)
	}
	return limitPlace{}, &LimitError{Why: err.Error(), Err: err}
}

// parent gives the nearest directory in which a group can be made and bounded.
func (l Limits) parent(probe string) (string, error) {
	dirs, err := ownCgroupDirs()
	if err != nil {
		return "", err
	}
	first := error(nil)
	for _, d := range dirs {
		g, err := makeCgroup(d, probe)
		if err == nil {
			err = errors.Join(g.limit(l), g.remove())
			g.close()
		}
		if err == nil {
			return d, nil
		}
		if first == nil || errors.Is(first, errNoController) { // which says less than a refusal above
			first = err
		}
	}
	return "", first
}

// errNoController says that a group lacks the files for a limit.
var errNoController = errors.New("has no controller")

// limit bounds the group. What its parent has no controller for is switched on
// there, which changes nothing for the groups beside it: they have no limits.
func (g *cgroup) limit(l Limits) error {
	for _, s := range l.settings() {
		err := g.write(s.file, s.text)
		if errors.Is(err, fs.ErrNotExist) && !s.optional {
			if on := g.enable(s.controller); on != nil {
				return on
			}
			err = g.write(s.file, s.text)
		}
		if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// enable switches a controller on for the groups beside this one. The kernel
// refuses it where the parent has processes of its own (cgroups(7), "no
// internal processes").
func (g *cgroup) enable(controller string) error {
	parent, err := openCgroup(filepath.Dir(g.ref.Path))
	if err != nil {
		return err
	}
	defer parent.close()
	has, err := parent.read("cgroup.controllers")
	if err != nil {
		return err
	}
	if !bytes.Contains(append([]byte(" "), append(bytes.TrimSpace(has), ' ')...), []byte(" "+controller+" ")) {
		return fmt.Errorf("%s %w for %s", parent.ref.Path, errNoController, controller)
	}
	return parent.write("cgroup.subtree_control", "+"+controller)
}

// limited reports whether somebody else has bounded the group.
func (g *cgroup) limited(l Limits) error {
	for _, s := range l.settings() {
		b, err := g.read(s.file)
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && strings.HasPrefix(string(b), "max") {
			err = errors.New("it is not set")
		}
		if err != nil {
			return fmt.Errorf("the user's service manager does not bound %s: %w", s.controller, err)
		}
	}
	return nil
}

// reached reads how often the group ran into its limits. What can't be read is 0.
func (g *cgroup) reached() (r Reached) {
	_, err := g.read("cgroup.events")
	r.Gone = err != nil
	for file, to := range map[string]struct {
		key string
		n   *int
	}{"memory.events": {"oom_kill", &r.OOMKills}, "pids.events": {"max", &r.Forks}} {
		b, _ := g.read(file)
		for line := range strings.Lines(string(b)) {
			if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == to.key {
				*to.n, _ = strconv.Atoi(v)
			}
		}
	}
	return r
}

// noteReached looks at the limits while the group is there: systemd removes one
// that is empty.
func (s *Session) noteReached() {
	if g := s.held.group; g != nil && s.opts.Limits != (Limits{}) {
		if r := g.reached(); r != (Reached{}) && (!r.Gone || s.reached == (Reached{})) {
			s.reached = r
		}
	}
}
