package cmd

import (
	"errors"
	"runtime"
)

// check finds what is wrong with run's own flags and with their combination;
// with flagsOnly, argv is not known.
func (o *runFlags) check(argv []string, flagsOnly bool) error {
	m := mistakes{}
	if len(argv) == 0 && !o.dryRun && !flagsOnly {
		m.errs = append(m.errs, usageHint("zsbx run --help", "no command given"))
	}
	explain := o.explain || o.explainFile != ""
	m.failIf(o.exec && o.tty, "--exec and --tty can't be used together")
	m.failIf(o.exec && o.sandboxExec, "--exec and --sandbox-exec can't be used together")
	m.failIf(o.trackOnly && o.sandboxExec, "--track-only and --sandbox-exec can't be used together")
	m.failIf(explain && o.exec, "--explain and --exec can't be used together")
	m.failIf(explain && o.keep, "--explain and --keep can't be used together")
	m.failIf(explain && o.trackOnly, "--explain and --track-only can't be used together")
	m.failIf(explain && o.dryRun, "--explain and --dry-run can't be used together")
	m.failIf(o.json && !o.dryRun && !explain, "--json can only be used with --dry-run and --explain")
	m.failIf(o.sandboxExec && runtime.GOOS != "darwin", "--sandbox-exec can only be used on macOS")
	p := &o.asked
	limits := len(p.FS.Rules)+len(p.FS.Deny)+len(p.Presets)+len(o.files)+len(p.Net.ConnectTCP)+len(p.Net.BindTCP)+len(p.Net.Unix) > 0
	m.failIf(o.trackOnly && (limits || o.noNet || o.net || o.strict || o.noBaseline), "--track-only can't be used with flags that limit files or the network")
	m.failIf(o.trackOnly && o.dryRun, "--dry-run has nothing to print with --track-only")
	return errors.Join(m.errs...)
}
