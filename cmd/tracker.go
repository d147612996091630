package cmd

import "fmt"

// checkTracker refuses names that are no tracker's; what is where it stands.
func checkTracker(what, name string) error {
	switch name {
	case "", "auto", "domain", "fingerprint", "cgroup", "subtree", "group":
		return nil
	}
	return fmt.Errorf("%s %s: one of auto, domain, cgroup and subtree is needed", what, quoteArg(name))
}
