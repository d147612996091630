package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/enforce/sandbox"
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
	o.format = "text"
	o.choice(fs, &o.format, "format", []string{"text", "toml", "json", "landlock", "sbpl"}, "the `FORMAT`: text, toml, json, landlock or sbpl")
	o.choice(fs, &o.os, "os", []string{"linux", "macos"}, "print for the system `OS`: linux or macos")
	fs.BoolVar(&o.list, "list", false, "list the presets")
	fs.BoolVar(&o.json, "json", false, "the same as --format json")
	o.policyFlags.add(fs)
	return command{c, func() error {
		_, err := o.policy()
		return errors.Join(o.check(), err)
	}}
}

// check finds what is wrong with profile's own flags.
func (o *profileFlags) check() error {
	m := mistakes{}
	if o.json {
		o.format = "json"
	}
	if o.os == "" {
		o.os = map[string]string{"sbpl": "macos", "landlock": "linux"}[o.format]
	}
	m.failIf(o.format == "sbpl" && o.os != "macos" || o.format == "landlock" && o.os != "linux", "--format %s and --os %s can't be used together", o.format, o.os)
	m.failIf(o.print && o.format != "text", "--print and --format %s can't be used together", o.format)
	return errors.Join(m.errs...)
}

func (o *profileFlags) run(a *app, argv []string) error {
	checkErr := o.check()
	if o.list && errors.Join(append(o.errs, checkErr)...) == nil {
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
