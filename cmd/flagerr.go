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
// first mistake, err; here the flags are read again, by a walk that goes on to
// the first word that can't be a flag or the value of one: behind an unknown
// flag that is only "--".
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

// walkFlags finds the mistakes in args without stopping at the first.
func walkFlags(fs *pflag.FlagSet, args []string) []string {
	var all []string
	unknown := false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		if len(a) < 2 || a[0] != '-' {
			if unknown { // perhaps its value
				continue
			}
			break
		}
		flags, value, has := splitFlag(fs, a)
		for i, f := range flags {
			last := i == len(flags)-1
			switch {
			case f.Flag == nil:
				unknown = true
				all = append(all, "unknown flag "+f.as+nearestFlag(fs, f.as))
			case f.NoOptDefVal != "":
				if last && has {
					all = append(all, setFlag(f, value)...)
				}
			case last && has:
				all = append(all, setFlag(f, value)...)
			case len(args) == 0 || args[0] == "--":
				all = append(all, "flag "+f.as+" needs a value")
			default:
				all = append(all, setFlag(f, args[0])...)
				args = args[1:]
			}
		}
	}
	return all
}

// writtenFlag is a flag as somebody wrote it; Flag is nil when there is none
// of that name.
type writtenFlag struct {
	*pflag.Flag
	as string
}

// splitFlag reads one word: --name, --name=value, -abc, -avalue, -a=value.
func splitFlag(fs *pflag.FlagSet, word string) (flags []writtenFlag, value string, has bool) {
	if name, ok := strings.CutPrefix(word, "--"); ok {
		name, value, has = strings.Cut(name, "=")
		return []writtenFlag{{fs.Lookup(name), "--" + name}}, value, has
	}
	for i := 1; i < len(word); i++ {
		f := fs.ShorthandLookup(word[i : i+1])
		flags = append(flags, writtenFlag{f, "-" + word[i:i+1]})
		rest := word[i+1:]
		if f == nil || f.NoOptDefVal == "" && rest != "" || strings.HasPrefix(rest, "=") {
			return flags, strings.TrimPrefix(rest, "="), rest != ""
		}
	}
	return flags, "", false
}

func setFlag(f writtenFlag, value string) []string {
	if err := f.Value.Set(value); err != nil {
		return []string{"flag " + f.as + ": " + shell.Quote(value) + " is not a " + f.Value.Type()}
	}
	return nil
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
