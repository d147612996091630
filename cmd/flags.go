package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/nearest"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/units"
)

// mistakes collects what is wrong with a command line. The values of flags are checked
// while pflag reads them. Mistakes are noted here, so that all can be reported at once:
// pflag would stop at the first.
type mistakes struct{ errs []error }

// failIf notes a mistake if wrong is true.
func (m *mistakes) failIf(wrong bool, format string, args ...any) {
	if wrong {
		m.errs = append(m.errs, usageHint("", format, args...))
	}
}

// flagValue is the value of a flag. pflag's own stringArray formats its empty default
// value with encoding/csv, which took most of the time that all flags took.
type flagValue struct {
	set   func(string) error // takes a text that is not empty; its error is noted
	text  string             // the default
	kind  string             // "stringArray" tells cobra's completion that the flag may be repeated
	words func() []string    // for completion; may be nil
}

func (v *flagValue) Set(s string) error { return v.set(s) }
func (v *flagValue) String() string     { return v.text }
func (v *flagValue) Type() string       { return v.kind }

// flag adds a flag of a kind with a default value.
func (m *mistakes) flag(fs *pflag.FlagSet, name, kind, value, usage string, set func(string) error) *flagValue {
	v := &flagValue{kind: kind, text: value, set: func(s string) error {
		var err error
		switch {
		case s == "":
			err = errors.New("the value is empty")
		case strings.HasPrefix(s, "--"): // pflag took the next flag as the value; a file of that name is ./--
			err = errors.New("the value is missing")
		default:
			err = set(s)
		}
		if err != nil {
			m.errs = append(m.errs, usageHint(instead(name, err), "--%s %s: %v", name, shell.Quote(s), err))
		}
		return nil
	}}
	fs.Var(v, name, usage)
	return v
}

// instead returns what to type if the value of a flag is wrong, or "".
func instead(flag string, err error) string {
	bad, is := errors.AsType[*rule.Error](err)
	switch {
	case !is || bad.Hint == "":
		return ""
	case strings.HasPrefix(bad.Hint, "zsbx "):
		return bad.Hint
	}
	return "--" + flag + " " + shell.Quote(bad.Hint)
}

// each adds a flag that may be given more than once.
func (m *mistakes) each(fs *pflag.FlagSet, name, usage string, set func(string) error) *flagValue {
	return m.flag(fs, name, "stringArray", "", usage, set)
}

// text adds a flag that takes any word.
func (m *mistakes) text(fs *pflag.FlagSet, p *string, name, usage string) {
	m.flag(fs, name, "string", "", usage, func(s string) error {
		*p = s
		return nil
	})
}

// choice adds a flag that is one of words, *p by default.
func (m *mistakes) choice(fs *pflag.FlagSet, p *string, name string, words []string, usage string) {
	m.flag(fs, name, "string", *p, usage, func(s string) error {
		*p = s
		return oneOf(s, words)
	}).words = func() []string { return words }
}

// oneOf returns an error if word is not one of words.
func oneOf(word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("must be one of %s%s", strings.Join(words, ", "), nearest.DidYouMean(word, words))
}

// duration adds a flag that is a time span, *d by default.
func (m *mistakes) duration(fs *pflag.FlagSet, d *time.Duration, name, usage string) {
	m.flag(fs, name, "string", d.String(), usage, func(s string) (err error) {
		*d, err = units.ParseTime(s)
		return err
	})
}

// flagError returns everything that is wrong with the flags. pflag stops at an unknown flag,
// so it is added, and all flags are parsed again. The word after it may be its value: if there
// is a "--", only that ends the flags.
func (a *app) flagError(c *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	fs := c.Flags()
	args := slices.Clone(a.args)
	if i := slices.Index(args, c.Name()); c.HasParent() && i >= 0 { // as cobra takes it out
		args = slices.Delete(args, i, i+1)
	}
	hint := flagHint(c, args)
	if slices.Contains(args, "--") {
		fs.SetInterspersed(true)
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	var unknown []error
	for none := (*pflag.NotExistError)(nil); errors.As(err, &none); err = fs.Parse(args) {
		flag, typed := unknownFlag(none)
		fs.AddFlag(flag)
		like := nearest.DidYouMean("--"+strings.TrimLeft(typed, "-"), names)
		unknown = append(unknown, usageHint(hint, "unknown flag %s%s", typed, like))
		a.errs = nil // those are found again
	}
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) { // other flags note their mistakes
		err = usageHint(hint, "--%s is a switch: it takes no value %s", bad.GetFlag().Name, shell.Quote(bad.GetValue()))
	} else if err != nil {
		err = usageHint(hint, "%w", err)
	}
	return errors.Join(slices.Concat(unknown, a.errs, []error{err})...)
}

// flagHint returns what to type if something is wrong with the flags: the same line with "run", if
// that word was left out.
func flagHint(c *cobra.Command, args []string) string {
	run := newRun(&app{})
	if c.HasParent() || run.ParseFlags(args) != nil || slices.ContainsFunc(args, isCommand) {
		return c.CommandPath() + " --help"
	}
	flags := len(args) - run.Flags().NArg()
	return "zsbx run " + quoteArgs(append(withoutValues(args[:flags]), args[flags:]...))
}

// unknownFlag returns a flag in place of one that does not exist, and how that was typed. The
// letters after an unknown letter are its value.
func unknownFlag(none *pflag.NotExistError) (f *pflag.Flag, typed string) {
	ignore := func(string) error { return nil }
	f = &pflag.Flag{Name: none.GetSpecifiedName(), NoOptDefVal: "true", Value: &flagValue{set: ignore}}
	letters := none.GetSpecifiedShortnames()
	if letters == "" {
		return f, "--" + f.Name
	}
	f.Name = "-" + letters[:1]
	f.Shorthand = letters[:1] // for pflag a letter is a byte
	if len(letters) > 1 {
		f.NoOptDefVal = ""
	}
	return f, "-" + letters
}
