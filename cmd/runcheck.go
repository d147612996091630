package cmd

import (
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// check finds what is wrong with run's own flags and with their combination;
// with flagsOnly, argv is not known.
func (o *runFlags) check(argv []string, flagsOnly bool) error {
	b := flagBuilder{}
	if len(argv) == 0 && !o.dryRun && !flagsOnly {
		b.errs = append(b.errs, usageHint("zsbx run --help", "no command given"))
	}
	if o.killAfter != "" && o.killAfter != "0" {
		b.duration("--kill-after", o.killAfter)
	}
	if err := checkTracker("--track", o.track); err != nil {
		b.errs = append(b.errs, coded(codeUsage, err))
	}
	b.gapNames(o.allowGaps)
	explain := o.explain || o.explainFile != ""
	for _, x := range []struct {
		given bool
		flags string
	}{
		{o.exec && o.tty, "--exec and --tty"},
		{o.exec && o.sandboxExec, "--exec and --sandbox-exec"},
		{o.trackOnly && o.sandboxExec, "--track-only and --sandbox-exec"},
		{explain && o.exec, "--explain and --exec"},
		{explain && o.keep, "--explain and --keep"},
		{explain && o.trackOnly, "--explain and --track-only"},
		{explain && o.dryRun, "--explain and --dry-run"},
		{o.json && !o.dryRun && !explain, ""},
	} {
		switch {
		case !x.given:
		case x.flags == "":
			b.fail("--json can only be used with --dry-run and --explain")
		default:
			b.fail("%s can't be used together", x.flags)
		}
	}
	if o.sandboxExec && runtime.GOOS != "darwin" {
		b.fail("--sandbox-exec can only be used on macOS")
	}
	if o.trackOnly {
		o.checkTrackOnly(&b)
	}
	if o.trackOnly && o.dryRun {
		b.fail("--dry-run has nothing to print with --track-only")
	}
	return errors.Join(b.errs...)
}

// gapNames checks the values of --allow-gap.
func (b *flagBuilder) gapNames(names []string) {
	known := append(enforce.GapNames(), enforce.AllHardening)
	for _, name := range names {
		if !slices.Contains(known, name) {
			meant := ""
			if n := policy.Nearest(name, known); n != "" {
				meant = "; did you mean " + n + "?"
			}
			b.fail("--allow-gap %s: no such gap; there are %s%s", shell.Quote(name), strings.Join(known, ", "), meant)
		}
	}
}

// checkTrackOnly refuses flags that ask for limits beside --track-only.
func (o *runFlags) checkTrackOnly(b *flagBuilder) {
	limits := len(o.ro) + len(o.rox) + len(o.rw) + len(o.rwNoexec) + len(o.deny) + len(o.presets) + len(o.files) +
		len(o.connectTCP) + len(o.bindTCP) + len(o.unix)
	if limits > 0 || o.noNet || o.net || o.strict || o.noBaseline {
		b.fail("--track-only can't be used with flags that limit files or the network")
	}
}
