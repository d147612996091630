package cmd

import "github.com/spf13/cobra"

func newReap(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "reap [--dry-run] [--json] ID|NAME|PREFIX... | --all | --stale",
		Short: "Kill all that a session left behind",
		Long:  "Kill every process of the sessions, and say by which method. The exit status is 0 only when nothing is left.",
		Example: `  zsbx reap 3f2a
  zsbx reap --all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error { return errNotYet },
	}
	fs := c.Flags()
	fs.Bool("all", false, "all sessions of this user")
	fs.Bool("stale", false, "all sessions whose zsbx is gone")
	fs.Bool("dry-run", false, "only say what would be killed")
	fs.Bool("json", false, "print JSON")
	return c
}
