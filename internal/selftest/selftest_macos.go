package selftest

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// The self-test of macOS uses the system's own tools, in a confined and in an unconfined shell.
// Nothing in this file needs macOS, so the acts and their controls can be tested elsewhere.

// macTrial is one act and what it proves.
type macTrial struct {
	name, promise string
	net           resolve.NetMode
	script        string // for sh; $1 is the scene, $2 the allowed port, $3 another port, $4 a process outside
}

// macTrials returns the acts, in the order of the promises.
func macTrials() []macTrial {
	open := resolve.NetOpen
	ports := resolve.NetPorts
	none := resolve.NetNone
	return []macTrial{
		{enforce.GapFiles, "files are read only where allowed", open, `cat "$1/file"`},
		{enforce.GapFiles, "files are written only where allowed", open, `echo x >"$1/file"`},
		{enforce.GapFiles, "files are made only where allowed", open, `echo x >"$1/new" && rm "$1/new"`},
		{enforce.GapFiles, "directories are listed only where allowed", open, `ls "$1"`},
		{enforce.GapFiles, "files are executed only where allowed", open, `"$1/prog"`},
		{enforce.GapFiles, "no second name for a file outside", open, `ln "$1/file" "$1/in/link" && rm "$1/in/link"`},
		{enforce.GapDeny, "denied files stay closed in what is allowed", open, `cat "$1/in/denied"`},
		{enforce.GapDeny, "denied files are not moved from under their rule", open,
			`mv "$1/in/denied" "$1/in/x" && mv "$1/in/x" "$1/in/denied"`},
		{enforce.GapZsbxFiles, "the caller's own files are not changed", open, `echo x >>"$1/in/own"`},
		{enforce.GapNetwork, "no network: TCP", none, macTCP + `"$2"`},
		{enforce.GapTCPPorts, "only the TCP ports that are listed", ports, macTCP + `"$3"`},
		{enforce.GapUnixSockets, "no connection to sockets of programs outside, by path", open,
			macUnix + `"$1/socket"`},
		{enforce.GapUnixSockets, "nor where files may be written", open, macUnix + `"$1/in/socket"`},
		{enforce.GapSignals, "no signals to processes outside", open, `kill -WINCH "$4"`},
	}
}

// macWorks is what a confined shell must be able to do, with allowed files and the allowed
// port. Without it a refusal would prove nothing.
const macWorks = `cat "$1/in/file" && echo x >"$1/in/new" && rm "$1/in/new" && "$1/in/prog" && ` + macTCP + `"$2"`

// These connect to what the next argument names. Every Mac has perl.
const (
	macTCP = `perl -MIO::Socket::INET -e ` +
		`'exit !IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 5)' `
	macUnix = `perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => $ARGV[0])' `
)

func (s *scene) attackMac(caps enforce.Caps, ask func(pid int) []Proof) ([]Proof, error) {
	h, err := host.HostIn(s.dir + "/in")
	if err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	m := &macScene{s, caps, &h}
	for _, mode := range []resolve.NetMode{resolve.NetOpen, resolve.NetPorts} {
		if n, err := m.act(mode, macWorks); err != nil || n != 0 {
			const broken = "self-test: what is allowed does not work under the restrictions"
			return nil, errors.Join(fmt.Errorf("%s: sh -c '%s': status %d", broken, macWorks, n), err)
		}
	}
	var out []Proof
	for _, t := range macTrials() {
		confined, err := m.act(t.net, t.script)
		free, freeErr := m.act("", t.script)
		err = errors.Join(err, freeErr)
		if err != nil {
			return out, fmt.Errorf("self-test of %s: %w", t.name, err)
		}
		p := Proof{Name: t.name, Promise: t.promise,
			Detail: fmt.Sprintf("sh -c '%s': status %d, without restrictions %d", t.script, confined, free)}
		p.Held = confined != 0 && free == 0
		if p.Held {
			p.Means = "Seatbelt"
		}
		out = append(out, p)
	}
	p, err := m.start(resolve.NetOpen, "exec sleep 60")
	if err != nil {
		return out, fmt.Errorf("self-test of the ways to act outside: %w", err)
	}
	defer p.Close()
	out = append(out, ask(p.Pid)...)
	return out, p.Kill()
}

// macScene is a scene, and the machine around it.
type macScene struct {
	*scene
	caps enforce.Caps
	host *host.Host
}

// act runs a script in a shell, under the restrictions unless mode is "". It returns the exit
// status, or -1 if a signal ended the shell.
func (s *macScene) act(mode resolve.NetMode, script string) (int, error) {
	proc, err := s.start(mode, script)
	if err != nil {
		return 0, err
	}
	defer proc.Close()
	for {
		if ev, err := proc.Next(); err != nil || ev.Kind == fork.Exited {
			return ev.Status.ExitStatus(), err
		}
	}
}

// start starts a shell without input and output. Unless mode is "", the shell runs under the
// baseline and what the acts need.
func (s *macScene) start(mode resolve.NetMode, script string) (*fork.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	c := &fork.Command{
		Path: "/bin/sh", Dir: s.host.Dir, Files: []*os.File{null, null, null}, Env: []string{"PATH=/usr/bin:/bin"},
		Args: []string{"sh", "-c", script, "sh",
			s.dir, strconv.Itoa(s.allowed), strconv.Itoa(s.port), strconv.Itoa(os.Getpid())},
	}
	from := policy.Origin{Source: "self-test"}
	p := &policy.Policy{FS: policy.FS{
		Rules: []policy.Rule{{Path: s.dir + "/in", Access: policy.Read | policy.Write | policy.Exec, Origin: from}},
		Deny:  []policy.Named{{Value: s.dir + "/in/denied", Origin: from}},
	}}
	switch mode {
	case resolve.NetNone:
		p.Net.Allow = policy.Named{Value: "false", Origin: from}
	case resolve.NetPorts:
		p.Net.ConnectTCP = []policy.Port{{Number: uint16(s.allowed), Origin: from}}
	}
	if mode != "" {
		r, err := resolve.Policy(policy.Merge(policy.Baseline(s.host.OS), p), *s.host)
		if err != nil {
			return nil, err
		}
		plan := enforce.NewPlan(r, s.caps, s.host, enforce.Options{Protect: []string{s.dir + "/in/own"}})
		if err := confine(plan, c); err != nil {
			return nil, err
		}
	}
	proc, err := fork.Start(c)
	return proc, enforce.ExplainStart(err)
}
