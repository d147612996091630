package cmd

import (
	"errors"

	"github.com/spf13/cobra"
)

func newPs(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "ps [--json]",
		Short:   "List sessions and their processes",
		Long:    "List the sessions of this user, their processes, and how they are tracked.",
		Example: "  zsbx ps --json",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return errNotYet },
	}
	c.Flags().Bool("json", false, "print JSON")
	return c
}

var errNotYet = errors.New("not built yet")
