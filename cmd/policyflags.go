package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
	"github.com/zsbx/zsbx/policy/shell"
)

// policyFlags are the flags that make a policy.
type policyFlags struct {
	mistakes

	asked policy.Policy // what flags say while they are read; policy has all of it

	noAutoPresets bool
	files         []string
	more          *policy.Policy // what learn tries

	noNet, net, cleanEnv, inheritEnv, privateHome, privatePids  bool
	noBaseline, sharedTmp, ignoreMissing, createMissing, strict bool

	chdir, fallback string
	allowGaps       []string
}

func (o *policyFlags) add(fs *pflag.FlagSet) {
	p := &o.asked
	o.rule(fs, "ro", policy.Read, "allow reading `PATH` and what is below it")
	o.rule(fs, "rox", policy.Read|policy.Exec, "allow reading and executing `PATH`")
	o.rule(fs, "rw", policy.Read|policy.Write|policy.Exec, "allow reading, writing and executing `PATH`, as a build tree needs")
	o.rule(fs, "rw-noexec", policy.Read|policy.Write, "allow reading and writing `PATH`, not executing")
	o.each(fs, "deny", "refuse all access to `PATH`, a path or a glob such as '**/.env', wherever it lies", func(s string) {
		p.FS.Deny = append(p.FS.Deny, policy.Deny{Pattern: s, Origin: flagOrigin("--deny")})
	})
	o.named(fs, &p.Presets, "preset", "add the preset `NAME` (see zsbx profile --list)").words = presetWords
	fs.BoolVar(&o.noAutoPresets, "no-auto-presets", false, "do not detect presets from the command and the working directory")
	fs.VarP(&flagValue{kind: "stringArray", set: func(s string) { o.files = append(o.files, s) }}, "policy", "p", "add the policy `FILE`, TOML or JSON")
	fs.BoolVar(&o.noNet, "no-net", false, "no network")
	fs.BoolVar(&o.net, "net", false, "all of the network, whatever policy files say")
	o.ports(fs, &p.Net.ConnectTCP, "connect-tcp", "allow connections to the TCP `PORT`, and no other network")
	o.ports(fs, &p.Net.BindTCP, "bind-tcp", "allow listening on the TCP `PORT`, and no other network")
	o.named(fs, &p.Net.Unix, "unix", "allow connecting to the Unix socket `PATH`")
	fs.Var(&flagValue{kind: "stringArray", set: o.variable}, "env", "pass the variable `NAME` on, or set NAME=VALUE")
	fs.BoolVar(&o.cleanEnv, "clean-env", false, "pass no variable on but those of --env")
	fs.BoolVar(&o.inheritEnv, "inherit-env", false, "pass all variables on")
	fs.BoolVar(&o.noBaseline, "no-baseline", false, "start from nothing: no system paths, no presets, no private temporary directory")
	fs.BoolVar(&o.sharedTmp, "shared-tmp", false, "allow /tmp and /var/tmp as they are, instead of private ones")
	fs.BoolVar(&o.createMissing, "create-missing", false, "make directories of --rw and --rw-noexec that do not exist")
	fs.BoolVar(&o.privateHome, "private-home", false, "give the command an empty home directory that is thrown away, but for what is allowed of the own one")
	fs.BoolVar(&o.privatePids, "private-pids", false, "let the command see no processes but the session's own")
	fs.BoolVar(&o.ignoreMissing, "ignore-missing", false, "skip paths of the other flags that do not exist")
	fs.StringVarP(&o.chdir, "chdir", "C", "", "run in the directory `DIR`")
	o.limit(fs, "timeout", "end the command after the time `D`, such as 10m or 90s, a bare number being seconds; exit status 124")
	o.limit(fs, "max-output", "end the command when it has written more than `N` bytes, such as 10MiB, to stdout and stderr together")
	o.limit(fs, "memory", "let the session have `N` bytes of memory, such as 2GiB")
	o.limit(fs, "pids", "let the session have `N` processes and threads")
	o.limit(fs, "cpu", "let the session have the time of `N` processors, such as 0.5")
	o.each(fs, "guard", "refuse a command line with words of the `LIST`: catastrophic, interpreters, escapes, exfiltration, shells, or one of a policy's; off drops those that policies name", o.guard).words = guardWords
	o.each(fs, "audit", "write what ran, and how it ended, to the log in `DIR`", func(s string) {
		p.Audit = policy.Audit{Dir: policy.Named{Value: s, Origin: flagOrigin("--audit")}}
	}).kind = "string"
	o.fallback = fallbackDeny
	o.choice(fs, &o.fallback, "fallback", []string{fallbackDeny, fallbackWarn, fallbackPrompt}, "what to `DO` when a promise can't be kept here: deny, warn or prompt")
	fs.Var(&flagValue{kind: "stringArray", set: o.allowGap, words: gapWords}, "allow-gap", "accept the gap `NAME`, as zsbx check calls it")
	fs.BoolVar(&o.strict, "strict", false, "refuse to run when hardening is missing, too")
}

func flagOrigin(name string) policy.Origin { return policy.Origin{Source: name} }

func (o *policyFlags) rule(fs *pflag.FlagSet, name string, access policy.Access, usage string) {
	o.each(fs, name, usage, func(s string) {
		o.asked.FS.Rules = append(o.asked.FS.Rules, policy.Rule{Path: s, Access: access, Origin: flagOrigin("--" + name)})
	})
}

func (o *policyFlags) named(fs *pflag.FlagSet, to *[]policy.Named, name, usage string) *flagValue {
	return o.each(fs, name, usage, func(s string) { *to = append(*to, policy.Named{Value: s, Origin: flagOrigin("--" + name)}) })
}

func (o *policyFlags) ports(fs *pflag.FlagSet, to *[]policy.Port, name, usage string) {
	fs.Var(&flagValue{kind: "stringArray", set: func(s string) {
		n, err := parsePort(s)
		if err != nil {
			o.fail("--%s %s: %v", name, shell.Quote(s), err)
		}
		*to = append(*to, policy.Port{Number: n, Origin: flagOrigin("--" + name)})
	}}, name, usage)
}

func (o *policyFlags) limit(fs *pflag.FlagSet, name, usage string) {
	fs.Var(&flagValue{kind: "string", set: func(s string) {
		for _, l := range o.asked.Limits.All() {
			if l.Flag() != "--"+name {
				continue
			}
			if err := l.Parse(s, flagOrigin("--"+name)); err != nil {
				o.fail("--%s %s: %v", name, shell.Quote(s), err)
			}
		}
	}}, name, usage)
}

func (o *policyFlags) variable(s string) {
	e := &o.asked.Env
	switch name, value, set := strings.Cut(s, "="); {
	case name == "" || strings.ContainsRune(s, 0):
		o.fail("--env %s: must be NAME or NAME=VALUE", shell.Quote(s))
	case set:
		e.Set = append(e.Set, policy.Var{Name: name, Value: value, Origin: flagOrigin("--env")})
	default:
		e.Allow = append(e.Allow, policy.Named{Value: name, Origin: flagOrigin("--env")})
	}
}

func (o *policyFlags) guard(s string) {
	if s == "off" {
		o.asked.Guard = policy.Guard{Off: true}
	} else {
		o.asked.Guard.Lists = append(o.asked.Guard.Lists, policy.Named{Value: s, Origin: flagOrigin("--guard")})
	}
}

func (o *policyFlags) allowGap(s string) {
	o.allowGaps = append(o.allowGaps, s)
	if known := gapWords(); !slices.Contains(known, s) {
		meant := ""
		if n := policy.Nearest(s, known); n != "" {
			meant = "; did you mean " + n + "?"
		}
		o.fail("--allow-gap %s: no such gap; there are %s%s", shell.Quote(s), strings.Join(known, ", "), meant)
	}
}

func gapWords() []string { return append(enforce.GapNames(), enforce.AllHardening) }

func guardWords() []string {
	return []string{"catastrophic", "interpreters", "escapes", "exfiltration", "shells", "off"}
}

func presetWords() (words []string) {
	for _, p := range policy.Presets() {
		words = append(words, p.Name+"\t"+p.Description)
	}
	return words
}

// check finds what is wrong with the flags.
func (o *policyFlags) check([]string) error {
	m, n := mistakes{slices.Clone(o.errs)}, &o.asked.Net
	m.failIf(o.net && o.noNet, "--net and --no-net can't be used together")
	m.failIf(o.net && len(n.ConnectTCP)+len(n.BindTCP) > 0, "--net can't be used with --connect-tcp or --bind-tcp, which close all other network")
	m.failIf(o.noNet && len(n.ConnectTCP) > 0, "--no-net and --connect-tcp can't be used together: ports that are listed close all other network")
	m.failIf(o.noNet && len(n.BindTCP) > 0, "--no-net and --bind-tcp can't be used together: ports that are listed close all other network")
	m.failIf(o.cleanEnv && o.inheritEnv, "--clean-env and --inherit-env can't be used together")
	return errors.Join(m.errs...)
}

// policy is what the flags ask for.
func (o *policyFlags) policy() *policy.Policy {
	p := o.asked
	p.FS.Rules = slices.Clone(p.FS.Rules)
	for i := range p.FS.Rules {
		r := &p.FS.Rules[i]
		r.Optional, r.Create = o.ignoreMissing, o.createMissing && r.Access&policy.Write != 0
	}
	if o.privateHome {
		p.Private.Home = policy.Named{Value: "private", Origin: flagOrigin("--private-home")}
	}
	if o.privatePids {
		p.Private.Pids = policy.Named{Value: "private", Origin: flagOrigin("--private-pids")}
	}
	if o.net {
		p.Net.Allow = &policy.Flag{Value: true, Origin: flagOrigin("--net")}
	}
	if o.noNet {
		p.Net.Allow = &policy.Flag{Value: false, Origin: flagOrigin("--no-net")}
	}
	if o.cleanEnv {
		p.Env.Mode, p.Env.From = policy.EnvVars, flagOrigin("--clean-env")
	}
	if o.inheritEnv {
		p.Env.Mode, p.Env.From = policy.EnvInherit, flagOrigin("--inherit-env")
	}
	return &p
}

// composed is the policy that flags and files make, and the machine that it is for.
type composed struct {
	*compose.Composed
	host policy.Host
}

// compose adds up what flags and files ask for, for a system; "" is this one. argv is
// the command, as far as presets are detected from it. The error joins all that is
// wrong with the files, and what check finds with the flags.
func (o *policyFlags) compose(os string, argv []string, check func([]string) error) (*composed, error) {
	flagErr := check(argv)
	host, err := o.thisHost()
	if err != nil {
		return nil, errors.Join(flagErr, err)
	}
	if os != "" {
		host.OS = os
	}
	c, err := compose.Compose(&host, &compose.Sources{
		Asked: o.policy(), Files: o.files, More: o.more, Args: argv,
		NoBaseline: o.noBaseline, NoAutoPresets: o.noAutoPresets, SharedTmp: o.sharedTmp, UserTemp: libsystem.UserTemp(),
	})
	if err := errors.Join(flagErr, o.composeErr(err)); err != nil {
		return nil, err
	}
	return &composed{c, host}, nil
}

// composeErr gives what is wrong with policies a code and a hint, each part of it.
func (o *policyFlags) composeErr(err error) error {
	var errs []error
	for _, e := range leaves(err) {
		if untrusted := (*compose.UntrustedError)(nil); errors.As(e, &untrusted) {
			e = &failure{code: codeUntrusted, status: exitFailed, hint: o.trustCommand(), err: e}
		}
		errs = append(errs, coded(codePolicy, e))
	}
	return errors.Join(errs...)
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
func (o *policyFlags) thisHost() (policy.Host, error) {
	h, err := policy.HostIn(o.chdir)
	if err == nil {
		return h, nil
	}
	f := &failure{code: codeUsage, status: exitFailed, err: err}
	if o.chdir == "" {
		f.hint = `cd "$HOME"`
	} else {
		f.err = fmt.Errorf("--chdir %s: %w", shell.Quote(o.chdir), err)
	}
	return h, f
}

// options are the flags that a plan depends on, as package sandbox takes them.
func (o *policyFlags) options(c *composed) sandbox.Options {
	return sandbox.Options{
		Host: &c.host, Asked: c.Asked, PolicyFiles: c.Files, Repository: c.Root,
		NoTempDir: o.sharedTmp || o.noBaseline,
		AllowGaps: o.allowGaps, Strict: o.strict,
	}
}
