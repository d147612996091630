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
)

// mistakes are what is wrong with a command line. What flags are given is checked
// while pflag reads them and noted here: pflag would stop at the first mistake, and
// all are said at once.
type mistakes struct{ errs []error }

func (m *mistakes) fail(format string, args ...any) {
	m.errs = append(m.errs, usageHint("", format, args...))
}

// failIf is for what flags can't say together.
func (m *mistakes) failIf(wrong bool, format string, args ...any) {
	if wrong {
		m.fail(format, args...)
	}
}

// apart is failIf for two flags that exclude each other.
func (m *mistakes) apart(one, other bool, names string) {
	m.failIf(one && other, "--%s can't be used together", strings.Replace(names, " ", " and --", 1))
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
		*p = s
		m.failIf(!slices.Contains(words, s), "--%s %s: must be %s", name, shell.Quote(s), oneOf(words))
	}}, name, usage)
}

// oneOf is "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
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

// trackers are the trackers that can be asked for, that of macOS, too.
var trackers = []string{"auto", "domain", "fingerprint", "cgroup", "subtree"}

// flagError says all that is wrong with the flags. pflag stops at one that there is
// not: the others are read without it. What follows it may be its value, so only "--"
// ends them then; without that, the first word does.
func (a *app) flagError(c *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	fs, hint := c.Flags(), c.CommandPath()+" --help"
	args := slices.Clone(a.args)
	if i := slices.Index(args, c.Name()); c.HasParent() && i >= 0 { // as cobra takes it out
		args = slices.Delete(args, i, i+1)
	}
	if slices.Contains(args, "--") {
		fs.SetInterspersed(true)
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	var unknown []error
	for none := (*pflag.NotExistError)(nil); errors.As(err, &none); err = fs.Parse(args) {
		long, letters := "--"+none.GetSpecifiedName(), none.GetSpecifiedShortnames()
		i := slices.IndexFunc(args, func(arg string) bool {
			if letters != "" {
				return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, letters)
			}
			return arg == long || strings.HasPrefix(arg, long+"=")
		})
		if i < 0 {
			break // pflag was given other words
		}
		name, _, _ := strings.Cut(args[i], "=")
		unknown = append(unknown, usageHint(hint, "unknown flag %s%s", name, policy.DidYouMean("--"+strings.TrimLeft(name, "-"), names)))
		args, a.errs = slices.Delete(args, i, i+1), nil // those are found again
	}
	if err != nil {
		err = usageHint(hint, "%w", err)
	}
	return errors.Join(slices.Concat(unknown, a.errs, []error{err})...)
}
