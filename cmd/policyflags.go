package cmd

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
	"github.com/zsbx/zsbx/policy/units"
)

// policyFlags are the flags of run, profile and check that make a policy.
// Lists are never split on commas, numbers are checked by parse: a list of
// strings can't be wrong while pflag reads it, so all mistakes are found.
type policyFlags struct {
	ro, rox, rw, rwNoexec, deny []string

	presets       []string
	noAutoPresets bool
	files         []string
	more          *policy.Policy // what learn tries

	noNet, net          bool
	connectTCP, bindTCP []string
	unix                []string

	env                  []string
	cleanEnv, inheritEnv bool

	privateHome, privatePids bool

	noBaseline, sharedTmp, ignoreMissing, createMissing bool

	timeout, maxOutput, memory, pids, cpu string
	guards                                []string
	audit                                 string
	chdir                                 string

	fallback  string
	allowGaps []string
	strict    bool
}

func (o *policyFlags) add(fs *pflag.FlagSet) {
	listVar(fs, &o.ro, "ro", "", "allow reading `PATH` and what is below it")
	listVar(fs, &o.rox, "rox", "", "allow reading and executing `PATH`")
	listVar(fs, &o.rw, "rw", "", "allow reading, writing and executing `PATH`, as a build tree needs")
	listVar(fs, &o.rwNoexec, "rw-noexec", "", "allow reading and writing `PATH`, not executing")
	listVar(fs, &o.deny, "deny", "", "refuse all access to `PATH`, a path or a glob such as '**/.env', wherever it lies")
	listVar(fs, &o.presets, "preset", "", "add the preset `NAME` (see zsbx profile --list)")
	fs.BoolVar(&o.noAutoPresets, "no-auto-presets", false, "do not detect presets from the command and the working directory")
	listVar(fs, &o.files, "policy", "p", "add the policy `FILE`, TOML or JSON")
	fs.BoolVar(&o.noNet, "no-net", false, "no network")
	fs.BoolVar(&o.net, "net", false, "all of the network, whatever policy files say")
	listVar(fs, &o.connectTCP, "connect-tcp", "", "allow connections to the TCP `PORT`, and no other network")
	listVar(fs, &o.bindTCP, "bind-tcp", "", "allow listening on the TCP `PORT`, and no other network")
	listVar(fs, &o.unix, "unix", "", "allow connecting to the Unix socket `PATH`")
	listVar(fs, &o.env, "env", "", "pass the variable `NAME` on, or set NAME=VALUE")
	fs.BoolVar(&o.cleanEnv, "clean-env", false, "pass no variable on but those of --env")
	fs.BoolVar(&o.inheritEnv, "inherit-env", false, "pass all variables on")
	fs.BoolVar(&o.noBaseline, "no-baseline", false, "start from nothing: no system paths, no presets, no private temporary directory")
	fs.BoolVar(&o.sharedTmp, "shared-tmp", false, "allow /tmp and /var/tmp as they are, instead of private ones")
	fs.BoolVar(&o.createMissing, "create-missing", false, "make directories of --rw and --rw-noexec that do not exist")
	fs.BoolVar(&o.privateHome, "private-home", false, "give the command an empty home directory that is thrown away, but for what is allowed of the own one")
	fs.BoolVar(&o.privatePids, "private-pids", false, "let the command see no processes but the session's own")
	fs.BoolVar(&o.ignoreMissing, "ignore-missing", false, "skip paths of the other flags that do not exist")
	fs.StringVarP(&o.chdir, "chdir", "C", "", "run in the directory `DIR`")
	fs.StringVar(&o.timeout, "timeout", "", "end the command after the time `D`, such as 10m or 90s, a bare number being seconds; exit status 124")
	fs.StringVar(&o.maxOutput, "max-output", "", "end the command when it has written more than `N` bytes, such as 10MiB, to stdout and stderr together")
	fs.StringVar(&o.memory, "memory", "", "let the session have `N` bytes of memory, such as 2GiB")
	fs.StringVar(&o.pids, "pids", "", "let the session have `N` processes and threads")
	fs.StringVar(&o.cpu, "cpu", "", "let the session have the time of `N` processors, such as 0.5")
	listVar(fs, &o.guards, "guard", "", "refuse a command line with words of the `LIST`: catastrophic, interpreters, escapes, exfiltration, shells, or one of a policy's; off drops those that policies name")
	fs.StringVar(&o.audit, "audit", "", "write what ran, and how it ended, to the log in `DIR`")
	fs.StringVar(&o.fallback, "fallback", "deny", "what to `DO` when a promise can't be kept here: deny, warn or prompt")
	listVar(fs, &o.allowGaps, "allow-gap", "", "accept the gap `NAME`, as zsbx check calls it")
	fs.BoolVar(&o.strict, "strict", false, "refuse to run when hardening is missing, too")
}

// policy turns the flags into a policy. The error joins all mistakes.
func (o *policyFlags) policy() (*policy.Policy, error) {
	p := &policy.Policy{}
	b := flagBuilder{p: p, optional: o.ignoreMissing, create: o.createMissing}
	b.rules("--ro", o.ro, policy.Read)
	b.rules("--rox", o.rox, policy.Read|policy.Exec)
	b.rules("--rw", o.rw, policy.Read|policy.Write|policy.Exec)
	b.rules("--rw-noexec", o.rwNoexec, policy.Read|policy.Write)
	for _, pat := range o.deny {
		if b.notEmpty("--deny", pat) {
			p.FS.Deny = append(p.FS.Deny, policy.Deny{Pattern: pat, Origin: flagOrigin("--deny")})
		}
	}
	p.Presets = b.named("--preset", o.presets)
	b.private(o)
	b.network(o)
	b.environment(o)
	b.limits(o)
	for _, name := range o.guards {
		if name == "off" {
			p.Guard = policy.Guard{Off: true}
		} else if b.notEmpty("--guard", name) {
			p.Guard.Lists = append(p.Guard.Lists, policy.Named{Value: name, Origin: flagOrigin("--guard")})
		}
	}
	if o.audit != "" {
		p.Audit = policy.Audit{Dir: policy.Named{Value: o.audit, Origin: flagOrigin("--audit")}}
	}
	switch o.fallback {
	case fallbackDeny, fallbackWarn, fallbackPrompt:
	default:
		b.fail("--fallback %s: must be deny, warn or prompt", shell.Quote(o.fallback))
	}
	return p, errors.Join(b.errs...)
}

func flagOrigin(name string) policy.Origin { return policy.Origin{Source: name} }

// flagBuilder fills a policy from flags and collects the mistakes.
type flagBuilder struct {
	p        *policy.Policy
	optional bool
	create   bool
	errs     []error
}

func (b *flagBuilder) fail(format string, args ...any) {
	b.errs = append(b.errs, usageErr(format, args...))
}

func (b *flagBuilder) notEmpty(flag, v string) bool {
	if v == "" {
		b.fail("%s: the value is empty", flag)
	}
	return v != ""
}

func (b *flagBuilder) rules(flag string, paths []string, acc policy.Access) {
	for _, path := range paths {
		if b.notEmpty(flag, path) {
			b.p.FS.Rules = append(b.p.FS.Rules, policy.Rule{
				Path: path, Access: acc, Optional: b.optional, Create: b.create && acc&policy.Write != 0, Origin: flagOrigin(flag),
			})
		}
	}
}

func (b *flagBuilder) named(flag string, values []string) []policy.Named {
	var l []policy.Named
	for _, v := range values {
		if b.notEmpty(flag, v) {
			l = append(l, policy.Named{Value: v, Origin: flagOrigin(flag)})
		}
	}
	return l
}

func (b *flagBuilder) private(o *policyFlags) {
	if o.privateHome {
		b.p.Private.Home = policy.Named{Value: "private", Origin: flagOrigin("--private-home")}
	}
	if o.privatePids {
		b.p.Private.Pids = policy.Named{Value: "private", Origin: flagOrigin("--private-pids")}
	}
}

func (b *flagBuilder) network(o *policyFlags) {
	n := &b.p.Net
	n.ConnectTCP = b.ports("--connect-tcp", o.connectTCP)
	n.BindTCP = b.ports("--bind-tcp", o.bindTCP)
	n.Unix = b.named("--unix", o.unix)
	switch {
	case o.net && o.noNet:
		b.fail("--net and --no-net can't be used together")
	case o.net && len(o.connectTCP)+len(o.bindTCP) > 0:
		b.fail("--net can't be used with --connect-tcp or --bind-tcp, which close all other network")
	case o.net:
		n.Allow = &policy.Flag{Value: true, Origin: flagOrigin("--net")}
	case o.noNet && len(o.connectTCP) > 0:
		b.fail("--no-net and --connect-tcp can't be used together: ports that are listed close all other network")
	case o.noNet && len(o.bindTCP) > 0:
		b.fail("--no-net and --bind-tcp can't be used together: ports that are listed close all other network")
	case o.noNet:
		n.Allow = &policy.Flag{Value: false, Origin: flagOrigin("--no-net")}
	}
}

// ports reads TCP ports. They are checked here because a uint16 conversion
// would turn 70000 into 4464.
func (b *flagBuilder) ports(flag string, values []string) []policy.Port {
	var l []policy.Port
	for _, v := range values {
		n, err := strconv.ParseUint(v, 10, 16)
		if err != nil || n == 0 {
			b.fail("%s %s: a port is a number from 1 to 65535", flag, shell.Quote(v))
			continue
		}
		l = append(l, policy.Port{Number: uint16(n), Origin: flagOrigin(flag)})
	}
	return l
}

func (b *flagBuilder) environment(o *policyFlags) {
	e := &b.p.Env
	switch {
	case o.cleanEnv && o.inheritEnv:
		b.fail("--clean-env and --inherit-env can't be used together")
	case o.cleanEnv:
		e.Mode, e.From = policy.EnvVars, flagOrigin("--clean-env")
	case o.inheritEnv:
		e.Mode, e.From = policy.EnvInherit, flagOrigin("--inherit-env")
	}
	for _, v := range o.env {
		name, value, set := strings.Cut(v, "=")
		switch {
		case name == "" || strings.ContainsRune(v, 0):
			b.fail("--env %s: must be NAME or NAME=VALUE", shell.Quote(v))
		case set:
			e.Set = append(e.Set, policy.Var{Name: name, Value: value, Origin: flagOrigin("--env")})
		default:
			e.Allow = append(e.Allow, policy.Named{Value: name, Origin: flagOrigin("--env")})
		}
	}
}

func (b *flagBuilder) limits(o *policyFlags) {
	given := map[string]string{"timeout": o.timeout, "max_output": o.maxOutput, "memory": o.memory, "pids": o.pids, "cpu": o.cpu}
	for _, l := range b.p.Limits.All() {
		text := given[l.Key]
		if text == "" {
			continue
		}
		if err := l.Parse(text, flagOrigin(l.Flag())); err != nil {
			b.fail("%s %s: %v", l.Flag(), shell.Quote(text), err)
		}
	}
}

func (b *flagBuilder) duration(flag, v string) time.Duration {
	d, err := units.ParseTime(v)
	if err != nil {
		b.fail("%s %s: %v", flag, shell.Quote(v), err)
	}
	return d
}
