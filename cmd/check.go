package cmd

import "github.com/spf13/cobra"

func newCheck(a *app) *cobra.Command {
	o := &policyFlags{}
	c := &cobra.Command{
		Use:   "check [flags] [-- COMMAND [ARG...]]",
		Short: "Say what this machine enforces, and what a policy allows",
		Args:  cobra.ArbitraryArgs,
		RunE:  func(*cobra.Command, []string) error { return errNotYet },
	}
	o.add(c.Flags())
	return c
}
