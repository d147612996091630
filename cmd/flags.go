package cmd

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
	"github.com/zsbx/zsbx/policy/units"
	"github.com/zsbx/zsbx/track"
)

// mistakes are what is wrong with a command line. What flags are given is checked
// while pflag reads them and noted here: pflag would stop at the first mistake, and
// all are said at once.
type mistakes struct{ errs []error }

func (m *mistakes) fail(format string, args ...any) {
	m.errs = append(m.errs, usageErr(format, args...))
}

// failIf is for what flags can't say together.
func (m *mistakes) failIf(wrong bool, format string, args ...any) {
	if wrong {
		m.fail(format, args...)
	}
}

// apart is failIf for two flags that exclude each other.
func (m *mistakes) apart(one, other bool, names string) {
	a, b, _ := strings.Cut(names, " ")
	m.failIf(one && other, "--%s and --%s can't be used together", a, b)
}

// flagValue is the value of a flag: whatever it is given goes to set. pflag's own
// stringArray formats its empty default value with encoding/csv, which made up most of
// the time that all flags took; and it splits nothing at commas.
type flagValue struct {
	set   func(string)
	text  string          // the default
	kind  string          // cobra's completion knows what may be repeated by "stringArray"
	words func() []string // for completion; may be nil
}

func (v *flagValue) Set(s string) error { v.set(s); return nil }
func (v *flagValue) String() string     { return v.text }
func (v *flagValue) Type() string       { return v.kind }

// each adds a flag that may be given more than once, but not the empty string.
func (m *mistakes) each(fs *pflag.FlagSet, name, usage string, set func(string)) *flagValue {
	v := &flagValue{kind: "stringArray", set: func(s string) {
		if s == "" {
			m.fail("--%s: the value is empty", name)
		} else {
			set(s)
		}
	}}
	fs.Var(v, name, usage)
	return v
}

// choice adds a flag that is one of words, *p by default.
func (m *mistakes) choice(fs *pflag.FlagSet, p *string, name string, words []string, usage string) {
	list := func() []string { return words }
	fs.Var(&flagValue{kind: "string", text: *p, words: list, set: func(s string) {
		if *p = s; !slices.Contains(words, s) {
			last := len(words) - 1
			m.fail("--%s %s: must be %s or %s", name, shell.Quote(s), strings.Join(words[:last], ", "), words[last])
		}
	}}, name, usage)
}

// duration adds a flag that is a time span, *d by default.
func (m *mistakes) duration(fs *pflag.FlagSet, d *time.Duration, name, usage string) {
	fs.Var(&flagValue{kind: "string", text: d.String(), set: func(s string) {
		var err error
		if *d, err = units.ParseTime(s); err != nil {
			m.fail("--%s %s: %v", name, shell.Quote(s), err)
		}
	}}, name, usage)
}

// trackers are the words for the trackers that can be asked for.
func trackers() []string { return []string{"auto", "domain", "cgroup", "subtree"} }

// checkTracker refuses names that are no tracker's; what is where it stands.
func checkTracker(what, name string) error {
	if !track.Kind(name).Valid() {
		return usageErr("%s %s: must be auto, domain, cgroup or subtree", what, shell.Quote(name))
	}
	return nil
}

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
	fresh := command{Command: c}
	for _, known := range commands() {
		if known.name == c.Name() {
			fresh = known.make(a) // without what pflag has read
		}
	}
	var all []error
	for _, msg := range walkFlags(fresh.Flags(), args) {
		all = append(all, usageHint(help, "%s", msg))
	}
	if fresh.check != nil {
		all = append(all, fresh.check(fresh.Flags().Args()))
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	return usageHint(help, "%w", err)
}

// walkFlags finds the mistakes in args without stopping at the first. Behind an
// unknown flag, whose value may be the next word, only "--" ends the flags.
func walkFlags(fs *pflag.FlagSet, args []string) (all []string) {
	if fs.Lookup("help") == nil {
		fs.BoolP("help", "h", false, "")
	}
	var none *pflag.NotExistError
	for errors.As(fs.ParseAll(args, func(*pflag.Flag, string) error { return nil }), &none) {
		f := &pflag.Flag{Name: none.GetSpecifiedName(), NoOptDefVal: "true", Hidden: true}
		as := "--" + f.Name
		if none.GetSpecifiedShortnames() != "" {
			as = "-" + f.Name
			f.Name, f.Shorthand = as, f.Name
		}
		what := "unknown flag " + as + nearestFlag(fs, as)
		f.Value = &flagValue{set: func(string) { all = append(all, what) }}
		fs.AddFlag(f)
		fs.SetInterspersed(true)
	}
	err := fs.ParseAll(args, func(f *pflag.Flag, value string) error {
		if value == "--" {
			all = append(all, "flag --"+f.Name+" needs a value")
		} else if f.Value.Set(value) != nil {
			all = append(all, "flag --"+f.Name+": "+shell.Quote(value)+" is not a "+f.Value.Type())
		}
		return nil
	})
	var short *pflag.ValueRequiredError
	switch {
	case errors.As(err, &short) && short.GetSpecifiedShortnames() != "":
		all = append(all, "flag -"+short.GetSpecifiedName()+" needs a value")
	case errors.As(err, &short):
		all = append(all, "flag --"+short.GetSpecifiedName()+" needs a value")
	case err != nil:
		all = append(all, err.Error())
	}
	return all
}

// nearestFlag asks whether another flag was meant, or is "".
func nearestFlag(fs *pflag.FlagSet, as string) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return policy.DidYouMean(as, names)
}
