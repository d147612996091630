package cmd

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// flagErrors says all that is wrong with the flags in args. pflag stops at the
// first mistake, err; here the flags are read again, with those that are unknown
// made known.
func (a *app) flagErrors(c *cobra.Command, args []string, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	help := c.CommandPath() + " --help"
	if len(args) > 0 && args[0] == c.Name() {
		args = args[1:]
	}
	fs := c.Flags()
	var check func() error
	for _, known := range commands() {
		if known.name == c.Name() {
			built := known.make(a) // without what pflag has read
			fs, check = built.Flags(), built.checkFlags
		}
	}
	var all []error
	for _, msg := range walkFlags(fs, args) {
		all = append(all, usageHint(help, "%s", msg))
	}
	if check != nil {
		all = append(all, check())
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	return usageHint(help, "%w", err)
}

// walkFlags finds the mistakes in args without stopping at the first. Behind an
// unknown flag, whose value may be the next word, only "--" ends the flags.
func walkFlags(fs *pflag.FlagSet, args []string) []string {
	unknown := map[string]string{} // by the name that it has in fs
	if fs.Lookup("help") == nil {
		fs.BoolP("help", "h", false, "")
	}
	for {
		var all []string
		err := fs.ParseAll(args, func(f *pflag.Flag, value string) error {
			if what := unknown[f.Name]; what != "" {
				all = append(all, what)
			} else if value == "--" {
				all = append(all, "flag --"+f.Name+" needs a value")
			} else if f.Value.Set(value) != nil {
				all = append(all, "flag --"+f.Name+": "+shell.Quote(value)+" is not a "+f.Value.Type())
			}
			return nil
		})
		var none *pflag.NotExistError
		var short *pflag.ValueRequiredError
		switch {
		case errors.As(err, &none):
			f := &pflag.Flag{Name: none.GetSpecifiedName(), Value: &list{}, NoOptDefVal: "true", Hidden: true}
			as := "--" + f.Name
			if none.GetSpecifiedShortnames() != "" {
				as = "-" + f.Name
				f.Name, f.Shorthand = as, f.Name
			}
			unknown[f.Name] = "unknown flag " + as + nearestFlag(fs, as)
			fs.AddFlag(f)
			fs.SetInterspersed(true)
			continue
		case errors.As(err, &short) && short.GetSpecifiedShortnames() != "":
			all = append(all, "flag -"+short.GetSpecifiedName()+" needs a value")
		case errors.As(err, &short):
			all = append(all, "flag --"+short.GetSpecifiedName()+" needs a value")
		case err != nil:
			all = append(all, err.Error())
		}
		return all
	}
}

// nearestFlag asks whether another flag was meant, or is "".
func nearestFlag(fs *pflag.FlagSet, as string) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if n := policy.Nearest(strings.TrimLeft(as, "-"), names); n != "" {
		return "; did you mean --" + n + "?"
	}
	return ""
}
