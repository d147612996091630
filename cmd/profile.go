package cmd

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy/shell"
)

// profileFlags are the flags of profile.
type profileFlags struct {
	policyFlags

	print  bool
	format string
	os     string
	list   bool
	json   bool
}

func newProfile(a *app) command {
	o := &profileFlags{}
	c := &cobra.Command{
		Use:   "profile [flags] [--] [COMMAND [ARG...]]",
		Short: "Show what would be enforced",
		Long: `Show what run would enforce with the same flags: every path with the flag, the
file and line, the preset or the baseline that it comes from, the network, the
environment, the limits, what the kernel is told, and what is not enforced here.
COMMAND is not run: presets are detected from it. The private temporary directory
of a run is left out: it has a new name each time.`,
		Example: `  zsbx profile --print --rw . -- cargo build
  zsbx profile --format toml --rw . > policy.toml
  zsbx profile --format sbpl --os macos
  zsbx profile --list`,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(a, args) },
	}
	fs := c.Flags()
	fs.SetInterspersed(false)
	fs.BoolVar(&o.print, "print", false, "print a table for people (the default)")
	fs.StringVar(&o.format, "format", "text", "the `FORMAT`: text, toml, json, landlock or sbpl")
	fs.StringVar(&o.os, "os", "", "print for the system `OS`: linux or macos")
	fs.BoolVar(&o.list, "list", false, "list the presets")
	fs.BoolVar(&o.json, "json", false, "the same as --format json")
	o.policyFlags.add(fs)
	return command{c, func() error {
		_, err := o.policy()
		return errors.Join(o.check(), err)
	}}
}

// formats are the values of --format.
func formats() []string { return []string{"text", "toml", "json", "landlock", "sbpl"} }

func (o *profileFlags) check() error {
	b := flagBuilder{}
	if o.json {
		o.format = "json"
	}
	if o.os == "" {
		o.os = map[string]string{"sbpl": "macos", "landlock": "linux"}[o.format]
	}
	if !slices.Contains(formats(), o.format) {
		b.fail("--format %s: must be text, toml, json, landlock or sbpl", shell.Quote(o.format))
	}
	switch o.os {
	case "", "linux", "macos":
	default:
		b.fail("--os %s: must be linux or macos", shell.Quote(o.os))
	}
	if o.format == "sbpl" && o.os != "macos" || o.format == "landlock" && o.os != "linux" {
		b.fail("--format %s and --os %s can't be used together", o.format, o.os)
	}
	if o.print && o.format != "text" {
		b.fail("--print and --format %s can't be used together", o.format)
	}
	return errors.Join(b.errs...)
}

func (o *profileFlags) run(a *app, argv []string) error {
	checkErr := o.check()
	if o.list && checkErr == nil {
		return a.listPresets(o.json)
	}
	c, err := o.composeFor(o.os, argv)
	if err := errors.Join(checkErr, err); err != nil {
		return err
	}
	opts := o.options(c)
	opts.NoTempDir = true // it has a new name each time
	plan, err := sandbox.Plan(c.Policy, opts)
	if err != nil {
		return err
	}
	return a.printPlan(c, plan, o.format)
}
