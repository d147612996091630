package cmd

import (
	"errors"
	"fmt"

	"github.com/zsbx/zsbx/internal/terminal"
)

// dialogue asks what is to become of what a command wrote, until that is decided.
type dialogue struct {
	ask   func(text string) (answer string, err error)
	parts []part // what can be chosen one by one

	show    func(changes []int) error // prints the difference; nil is all of it
	apply   func(changes []int) error // nil is all
	keep    func() error
	discard func() error
}

// part is one thing that can be chosen: a file that needs a look, or what else is below one
// directory.
type part struct {
	name    string // for people
	changes []int  // as show and apply take them
}

const (
	mainQuestion = "apply [a], show the difference [d], choose [c], keep for later [k], throw away [t]? "
	partQuestion = "apply [a], show the difference [d], leave [l], back [b]? "
)

// errNoAnswer says that nobody answered.
var errNoAnswer = errors.New("nobody answered")

// decide asks until there is an answer that decides. If nobody answers, all is kept.
func (q *dialogue) decide() error {
	for {
		answer, err := q.ask(mainQuestion)
		if err != nil {
			return q.keep()
		}
		switch answer {
		case "a":
			return q.apply(nil)
		case "d":
			if err := q.show(nil); err != nil {
				return errors.Join(err, q.keep())
			}
		case "c":
			chosen, err := q.choose()
			if errors.Is(err, errNoAnswer) {
				return q.keep()
			}
			if err != nil {
				return errors.Join(err, q.keep())
			}
			if len(chosen) > 0 {
				return q.apply(chosen)
			}
		case "k":
			return q.keep()
		case "t":
			return q.discard()
		}
	}
}

// choose asks about each part, and returns what is to be applied; nothing if the user goes back.
func (q *dialogue) choose() (chosen []int, _ error) {
	for i := 0; i < len(q.parts); {
		p := &q.parts[i]
		about := fmt.Sprintf("%s (%d of %d)\n", terminal.Printable(p.name), i+1, len(q.parts))
		answer, err := q.ask(about + partQuestion)
		if err != nil {
			return nil, errNoAnswer
		}
		switch answer {
		case "a":
			chosen = append(chosen, p.changes...)
			i++
		case "l":
			i++
		case "b":
			return nil, nil
		case "d":
			if err := q.show(p.changes); err != nil {
				return nil, err
			}
		}
	}
	return chosen, nil
}
