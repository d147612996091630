package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Guard says which command lines are refused before anything runs. It is advice:
// early, readable errors. Package guard has the built-in lists, and compares.
type Guard struct {
	Off   bool               // flags only: what weaker policies switched on is off
	Lists []Named            // names of the lists that are on
	Words map[string][]Named // by list: commands' names and arguments, globs as in path.Match
}

// GuardOn is what the policy's guard is on one system.
func (p *Policy) GuardOn(os string) *Guard {
	g := &Guard{}
	g.add(&p.Guard)
	g.add(&p.forSystem(os).Guard)
	return g
}

func (g *Guard) add(p *Guard) {
	if p.Off {
		g.Lists = nil
	}
	g.Off = g.Off || p.Off
	g.Lists = append(g.Lists, p.Lists...)
	for list, words := range p.Words {
		g.addWords(list, words)
	}
}

func (g *Guard) addWords(list string, words []Named) {
	if g.Words == nil {
		g.Words = map[string][]Named{}
	}
	g.Words[list] = slices.Concat(g.Words[list], words)
}

// checkListName says what is wrong with the name of a list.
func checkListName(s string) error {
	if s == "" || s == "off" || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return fmt.Errorf("bad name of a guard list %q: use a to z, digits, - and _, and not off", s)
	}
	return nil
}

// checkGuardWords says what is wrong with an entry of a list.
func checkGuardWords(s string) error {
	words := strings.Fields(s)
	if hasControl(s) || len(words) == 0 || strings.Trim(words[0], "*?") == "" || strings.Contains(words[0], "/") {
		return fmt.Errorf("bad entry %q of a guard list: a command's name is needed, without a directory, then arguments", s)
	}
	for _, w := range words {
		if _, err := path.Match(w, ""); err != nil {
			return fmt.Errorf("bad entry %q of a guard list: %q is no pattern", s, w)
		}
	}
	return nil
}
