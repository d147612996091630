package cmd

import (
	"errors"
	"fmt"

	"github.com/zsbx/zsbx/internal/terminal"
)

// dialogue asks what is to become of what a command wrote, until that is decided.
type dialogue struct {
	ask   func(text string) (answer string, err error)
	show  func(changes []int) error // prints the difference; nil is all of it
	parts []part                    // what can be chosen one by one
}

// part is one thing that can be chosen: a file that needs a look, or what else is below one
// directory.
type part struct {
	name    string // for people
	changes []int  // their indexes
}

const (
	mainQuestion = "apply [a], show the difference [d], choose [c], keep for later [k], throw away [t]? "
	partQuestion = "apply [a], show the difference [d], leave [l], back [b]? "
)

// errNoAnswer says that nobody answered.
var errNoAnswer = errors.New("nobody answered")

// The answers that decide.
const (
	applyAnswer   = "a"
	keepAnswer    = "k"
	discardAnswer = "t"
)

// decide asks until there is an answer that decides. changes are those to apply; nil is all. After an error all is
// kept.
func (q *dialogue) decide() (answer string, changes []int, err error) {
	for {
		answer, err = q.ask(mainQuestion)
		if err != nil {
			return keepAnswer, nil, err
		}
		switch answer {
		case applyAnswer, keepAnswer, discardAnswer:
			return answer, nil, nil
		case "d":
			err = q.show(nil)
		case "c":
			changes, err = q.choose()
			if err == nil && len(changes) > 0 {
				return applyAnswer, changes, nil
			}
		}
		if err != nil {
			return keepAnswer, nil, err
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
			return nil, err
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
