package cmd

import (
	"strings"

	"github.com/spf13/pflag"
)

// list is a flag that may be given more than once. It is never split at
// commas. pflag's own stringArray formats its empty default value with
// encoding/csv, which made up most of the time that all flags took.
type list []string

func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

func (l *list) String() string { return strings.Join(*l, " ") }

// Type is what cobra's completion knows as a flag that may be repeated.
func (l *list) Type() string { return "stringArray" }

// listVar adds a list to fs.
func listVar(fs *pflag.FlagSet, p *[]string, name, short, usage string) {
	fs.VarP((*list)(p), name, short, usage)
}
