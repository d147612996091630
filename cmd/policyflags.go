package cmd

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/libsystem"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/policy"
)

// policyFlags are the flags that make a policy.
type policyFlags struct {
	*mistakes
	fs *pflag.FlagSet

	asked policy.Policy // what the flags say
	turns []func()      // each adds what a switch says to asked

	ignoreMissing, createMissing bool

	chdir, fallback string

	from compose.Sources // the files and the other sources; More is what learn tries

	opts supervise.Options // what the flags say about the run
}

func (o *policyFlags) add(a *app, fs *pflag.FlagSet) {
	o.mistakes = &a.mistakes
	o.fs = fs
	fs.SetInterspersed(false)
	o.put("ro", "fs.ro", "allow reading `PATH` and what is below it")
	o.put("rox", "fs.rox", "allow reading and executing `PATH`")
	o.put("rw", "fs.rw", "allow reading, writing and executing `PATH`, as a build tree needs")
	o.put("rw-noexec", "fs.rw_noexec", "allow reading and writing `PATH`, but not executing it")
	o.put("deny", "fs.deny",
		"refuse all access to `PATH`: a path, or a glob such as '**/.env', "+
			"which is searched for below the working directory")
	o.put("preset", "presets", "add the preset `NAME` (see zsbx profile --list)").words = presetWords
	fs.BoolVar(&o.from.NoAutoPresets, "no-auto-presets", false,
		"do not detect presets from the command and the working directory")
	file := func(s string) error { o.from.Files = append(o.from.Files, s); return nil }
	fs.VarP(&flagValue{kind: "stringArray", set: file}, "policy", "p", "add the policy `FILE`, TOML or JSON")
	o.turn("no-net", "net.allow", "false", "close the network; on Linux the session's own servers stay reachable")
	o.turn("net", "net.allow", "true", "open all of the network, whatever policy files say")
	o.put("connect-tcp", "net.connect_tcp", "allow connections to the TCP `PORT`, and no other network")
	o.put("bind-tcp", "net.bind_tcp", "allow listening on the TCP `PORT`, and no other network")
	o.put("allow-host", "net.hosts", "allow connections to the host `RULE`, which is HOST[:PORT][/tls|/http|/tcp], "+
		"and no other network; without a port it is 443")
	o.each(fs, "allow-private-host", "the same for the host `RULE`, whose addresses may be private", o.privateHost)
	o.put("deny-host", "net.deny_hosts", "refuse connections to `HOST[:PORT]` although --allow-host allows them")
	o.put("unix", "net.unix", "allow connecting to the Unix socket `PATH`")
	fs.BoolVar(&o.from.Sign, "sign", false,
		"let git sign commits: open the agent's socket and the public keys that your git configuration names")
	o.each(fs, "env", "pass on the variable `NAME`, or set NAME=VALUE", o.variable)
	o.turn("clean-env", "env.mode", "vars", "pass on no variables except those of --env")
	o.turn("inherit-env", "env.mode", "inherit", "pass on all variables")
	fs.BoolVar(&o.from.NoBaseline, "no-baseline", false,
		"start from nothing: no system paths, no presets, no private temporary directory")
	fs.BoolVar(&o.from.SharedTmp, "shared-tmp", false, "allow /tmp and /var/tmp as they are, instead of private ones")
	fs.BoolVar(&o.createMissing, "create-missing", false,
		"make the directories of --rw and --rw-noexec that do not exist")
	o.turn("private-home", "fs.home", "private",
		"give the command a temporary home directory that is empty except for what is allowed of the real one")
	o.turn("try", "fs.writes", "try", "write files to a layer, which becomes real only when you apply it")
	fs.BoolVar(&o.opts.Try.All, "try-all", false, "with a layer: give the caches of presets one, too")
	fs.BoolVar(&o.opts.Try.Protected, "try-protected", false,
		"with a layer: let the command write protected files there")
	o.turn("private-pids", "process.pids", "private", "let the command see only the processes of its session")
	fs.BoolVar(&o.ignoreMissing, "ignore-missing", false, "skip paths of the other flags that do not exist")
	fs.StringVarP(&o.chdir, "chdir", "C", "", "run in the directory `DIR`")
	o.putOne("timeout", "limits.timeout",
		"end the command after the time `D`, such as 10m or 90s (a bare number means seconds), with exit status 124")
	o.putOne("max-output", "limits.max_output",
		"end the command when it has written more than `N` bytes, such as 10MiB, to stdout and stderr together")
	o.putOne("memory", "limits.memory", "limit the session to `N` bytes of memory, such as 2GiB")
	o.putOne("pids", "limits.pids", "limit the session to `N` processes and threads")
	o.putOne("cpu", "limits.cpu", "limit the session to the time of `N` processors, such as 0.5")
	o.addGuard(fs)
	o.putOne("audit", "audit.dir", "record what ran and how it ended in the log in `DIR`")
	o.fallback = "deny"
	o.choice(fs, &o.fallback, "fallback", []string{"deny", "warn", "prompt"},
		"what to `DO` when a promise can't be kept here: deny, warn or prompt")
	o.each(fs, "allow-gap", "accept the gap `NAME`, as zsbx check calls it", o.allowGap).words = gapWords
	fs.BoolVar(&o.opts.Strict, "strict", false, "refuse to run even if only hardening is missing")
}

// addGuard adds the flag for the word lists of package guard.
func (o *policyFlags) addGuard(fs *pflag.FlagSet) {
	lists := []string{"catastrophic", "interpreters", "escapes", "exfiltration", "shells"}
	usage := "refuse a command line with words of the `LIST`: " + strings.Join(lists, ", ") +
		", or a list of a policy; off drops the lists that policies name"
	o.each(fs, "guard", usage, o.guard).words = func() []string { return append(lists, "off") }
}

// named returns the value of a flag, with the flag as its origin.
func named(flag, value string) policy.Named {
	return policy.Named{Value: value, Origin: policy.Origin{Source: "--" + flag}}
}

// put adds a flag that does the same as a key of policy files, and that may be repeated.
func (o *policyFlags) put(flag, key, usage string) *flagValue {
	return o.each(o.fs, flag, usage, func(s string) error { return o.asked.Put(key, named(flag, s)) })
}

// putOne adds a flag that does the same as a key of policy files with one value.
func (o *policyFlags) putOne(flag, key, usage string) {
	o.put(flag, key, usage).kind = "string"
}

// turn adds a switch for one value of a key of policy files.
func (o *policyFlags) turn(flag, key, value, usage string) {
	on := o.fs.Bool(flag, false, usage)
	o.turns = append(o.turns, func() {
		if *on {
			_ = o.asked.Put(key, named(flag, value)) // only ports can be wrong
		}
	})
}

// privateHost is --allow-private-host.
func (o *policyFlags) privateHost(s string) error {
	v := named("allow-private-host", s)
	v.Name = "private"
	return o.asked.Put("net.hosts", v)
}

func (o *policyFlags) variable(s string) error {
	key := "env.allow"
	if strings.Contains(s, "=") {
		key = "env.set"
	}
	if s[0] == '=' || strings.ContainsRune(s, 0) {
		return errors.New("must be NAME or NAME=VALUE")
	}
	return o.asked.Put(key, named("env", s))
}

func (o *policyFlags) guard(s string) error {
	if s == "off" {
		o.asked.Guard = policy.Guard{Off: true}
		return nil
	}
	return o.asked.Put("guard.lists", named("guard", s))
}

func (o *policyFlags) allowGap(s string) error {
	o.opts.AllowGaps = append(o.opts.AllowGaps, s)
	return oneOf(s, gapWords())
}

func gapWords() []string { return append(enforce.GapNames(), enforce.AllHardening) }

func presetWords() []string {
	return each(presets.All(), func(p presets.Info) string { return p.Name + "\t" + p.Description })
}

// given reports whether a flag was given. A switch set to false was not, and neither was a
// flag that the command lacks.
func (o *policyFlags) given(flag string) bool {
	f := o.fs.Lookup(flag)
	return f != nil && f.Changed && f.Value.String() != "false"
}

// excludes refuses a flag together with each of the others.
func (o *policyFlags) excludes(flag string, others ...string) {
	for _, other := range others {
		o.failIf(o.given(flag) && o.given(other), "--%s and --%s can't be used together", flag, other)
	}
}

// check returns what is wrong with the flags. All of them must have been read.
func (o *policyFlags) check() error {
	for _, turn := range o.turns {
		turn()
	}
	o.excludes("net", "no-net", "connect-tcp", "bind-tcp", "allow-host", "allow-private-host", "deny-host")
	o.excludes("no-net", "connect-tcp", "bind-tcp", "allow-host", "allow-private-host", "deny-host")
	o.excludes("connect-tcp", "allow-host", "allow-private-host", "deny-host")
	o.excludes("clean-env", "inherit-env")
	return errors.Join(o.errs...)
}

// compose adds up what flags and files ask for on the system os; "" is this one. Presets
// are detected from argv, the command. The error joins flagErr, what is wrong with the
// files, and then what is wrong with the policy that they make.
func (o *policyFlags) compose(os string, argv []string, flagErr error) (*compose.Composed, error) {
	host, err := o.thisHost()
	if err != nil {
		return nil, errors.Join(flagErr, err)
	}
	if os != "" {
		host.OS = os
	}
	for i := range o.asked.FS.Rules {
		r := &o.asked.FS.Rules[i]
		r.Optional = o.ignoreMissing
		r.Create = o.createMissing && r.Access&policy.Write != 0
	}
	for i := range o.asked.Net.Unix {
		o.asked.Net.Unix[i].Optional = o.ignoreMissing
	}
	o.from.Asked = &o.asked
	o.from.Args = argv
	o.from.UserTemp = libsystem.UserTemp()
	c, err := compose.Compose(&host, &o.from)
	err = errors.Join(flagErr, o.composeErr(err))
	if c != nil && c.Policy.On(host.OS).FS.Writes.Value != "try" {
		for _, flag := range []string{"try-all", "try-protected"} {
			if o.given(flag) {
				err = errors.Join(err, usageHint("--try", "--%s: the policy does not ask for a layer", flag))
			}
		}
	}
	if err != nil && c != nil && !o.opts.TrackOnly && host.OS == policy.ThisSystem() {
		c.Policy.Net.DenyHosts = nil // what they are about may be what is wrong
		_, more := resolve.Policy(c.Policy, host)
		err = errors.Join(err, coded(supervise.CodePolicy, more))
	}
	return c, err
}

// composeErr gives each error that err joins a code, and a hint if there is one.
func (o *policyFlags) composeErr(err error) error {
	all := leaves(err)
	for i, e := range all {
		if _, untrusted := errors.AsType[*policy.UntrustedError](e); untrusted {
			all[i] = refusal(codeUntrusted, o.trustCommand(), "%w", e)
		}
	}
	return coded(supervise.CodePolicy, errors.Join(all...))
}

// trustCommand is what to type to see what the project's policies ask for.
func (o *policyFlags) trustCommand() string {
	if o.chdir != "" {
		return "zsbx check -C " + shell.Quote(o.chdir) + " --trust"
	}
	return "zsbx check --trust"
}

// thisHost is the machine as the policy sees it, with the working directory
// that the command will have.
func (o *policyFlags) thisHost() (host.Host, error) {
	h, err := host.HostIn(o.chdir)
	switch {
	case err == nil:
		return h, nil
	case o.chdir == "":
		return h, usageHint(`cd "$HOME"`, "%w", err)
	}
	return h, usageHint("", "--chdir %s: %w", shell.Quote(o.chdir), err)
}

// options returns the options of a run, from the flags and from what was composed.
func (o *policyFlags) options(c *compose.Composed) supervise.Options {
	opts := o.opts
	opts.Host = c.Host
	opts.Asked = c.Asked
	opts.PolicyFiles = c.Files
	opts.Repository = c.Root
	opts.NoTempDir = o.from.SharedTmp || o.from.NoBaseline
	return opts
}
