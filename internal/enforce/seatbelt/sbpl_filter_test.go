package seatbelt_test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Target is what an operation acts on. Only the fields for the operation's kind matter.
type Target struct {
	Path       string   // of files, programs, sockets in the file system; canonical
	Extensions []string // sandbox extensions that the process holds for Path
	Name       string   // of Mach services, sysctls, POSIX IPC objects, socket domains
	Process    string   // "self", "same-sandbox" or "others"
	Proto      string   // "tcp" or "udp" for the network
	Port       int      // the remote port when connecting, the local one when listening
	Host       string   // "localhost" or anything else
	Local      bool     // the address is the process's own: binding, accepting
	Dir        bool     // the path is a directory
	XPC        string   // a service of the program's own bundle, or of a framework
	Command    int      // of fcntl(2) or ioctl(2)
}

// filter is a compiled filter.
type filter struct {
	name    string
	classes class
	match   func(Target) bool
	path    bool // it checks the path
}

// maker compiles one kind of filter.
type maker struct {
	classes class
	make    func(args []value) (func(Target) bool, error)
}

const pathClasses = onFile | onNetwork

// makers has the filters that the model knows.
var makers = map[string]maker{
	"literal":           {pathClasses, literal},
	"path":              {pathClasses, literal},
	"path-literal":      {pathClasses, literal},
	"subpath":           {pathClasses, subpath},
	"prefix":            {pathClasses, prefix},
	"path-prefix":       {pathClasses, prefix},
	"regex":             {pathClasses, pathRegex},
	"path-regex":        {pathClasses, pathRegex},
	"path-ancestors":    {pathClasses, pathAncestors},
	"extension":         {onFile | onMach, extension},
	"vnode-type":        {onFile, vnodeType},
	"global-name":       {onMach, name},
	"global-name-regex": {onMach, nameRegex},
	"local-name":        {onMach, name},

	"xpc-service-name-prefix": {onMach, xpcPrefix},

	"ipc-posix-name":       {onIPC, name},
	"ipc-posix-name-regex": {onIPC, nameRegex},
	"sysctl-name":          {onSysctl, name},
	"sysctl-name-prefix":   {onSysctl, namePrefix},
	"target":               {onProcess, process},
	"socket-domain":        {onSocket, socketDomain},
	"fcntl-command":        {onFcntl, fcntlCommand},
	"ioctl-command":        {onFile, ioctlCommand},
}

func literal(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	return func(t Target) bool { return t.Path == s }, err
}

func subpath(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	switch {
	case err != nil:
		return nil, err
	case !strings.HasPrefix(s, "/"):
		return nil, fmt.Errorf("subpath %q is not absolute", s)
	case s != "/" && strings.HasSuffix(s, "/"):
		return nil, fmt.Errorf("subpaths must not end with a slash: %q", s)
	}
	below := strings.TrimSuffix(s, "/") + "/"
	return func(t Target) bool { return t.Path == s || strings.HasPrefix(t.Path, below) }, nil
}

func prefix(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	return func(t Target) bool { return strings.HasPrefix(t.Path, s) }, err
}

func pathAncestors(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	if err != nil || s == "/" {
		return nil, fmt.Errorf("path-ancestors of %q", s)
	}
	var as []string
	for d := path.Dir(s); ; d = path.Dir(d) {
		as = append(as, d)
		if d == "/" {
			break
		}
	}
	return func(t Target) bool { return slices.Contains(as, t.Path) }, nil
}

func pathRegex(args []value) (func(Target) bool, error) {
	re, err := compileRegex(args)
	return func(t Target) bool { return t.Path != "" && re.MatchString(t.Path) }, err
}

func nameRegex(args []value) (func(Target) bool, error) {
	re, err := compileRegex(args)
	return func(t Target) bool { return re.MatchString(t.Name) }, err
}

func name(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	return func(t Target) bool { return t.Name == s }, err
}

func namePrefix(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	return func(t Target) bool { return strings.HasPrefix(t.Name, s) }, err
}

// vnodeType treats targets as regular files unless they say otherwise.
func vnodeType(args []value) (func(Target) bool, error) {
	if len(args) != 1 || !slices.Contains([]string{"DIRECTORY", "REGULAR-FILE"}, strings.ToUpper(args[0].symbol)) {
		return nil, fmt.Errorf("vnode-type takes one type")
	}
	return func(t Target) bool { return t.Dir == strings.EqualFold(args[0].symbol, "DIRECTORY") }, nil
}

func xpcPrefix(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	return func(t Target) bool { return t.XPC != "" && strings.HasPrefix(t.XPC, s) }, err
}

func fcntlCommand(args []value) (func(Target) bool, error) {
	if len(args) == 0 || slices.ContainsFunc(args, func(v value) bool { return v.number == 0 }) {
		return nil, fmt.Errorf("fcntl-command takes numbers")
	}
	return func(t Target) bool {
		return slices.ContainsFunc(args, func(v value) bool { return v.number == t.Command })
	}, nil
}

// tiocsti is the request that types into a terminal (sys/ttycom.h).
const tiocsti = 0x80017472

// ioctlCommand takes the name of a request.
func ioctlCommand(args []value) (func(Target) bool, error) {
	if len(args) != 1 || args[0].symbol != "tiocsti" {
		return nil, fmt.Errorf("ioctl-command takes the name of a request")
	}
	return func(t Target) bool { return t.Command == tiocsti }, nil
}

func extension(args []value) (func(Target) bool, error) {
	s, err := oneString(args)
	return func(t Target) bool { return slices.Contains(t.Extensions, s) }, err
}

// process accepts the existing targets. "same-sandbox" includes the process itself.
func process(args []value) (func(Target) bool, error) {
	if len(args) != 1 || args[0].symbol == "" {
		return nil, fmt.Errorf("target takes one name")
	}
	s := args[0].symbol
	switch s {
	case "self", "others", "children", "pgrp":
		return func(t Target) bool { return t.Process == s }, nil
	case "same-sandbox":
		return func(t Target) bool { return t.Process == s || t.Process == "self" }, nil
	}
	return nil, fmt.Errorf("target %s is unknown", s)
}

// socketDomain accepts the domains that profiles in the field use.
func socketDomain(args []value) (func(Target) bool, error) {
	known := []string{"AF_UNIX", "AF_INET", "AF_INET6", "AF_ROUTE", "AF_SYSTEM"}
	if len(args) != 1 || !slices.Contains(known, strings.ToUpper(args[0].symbol)) { // Scheme's symbols ignore case
		return nil, fmt.Errorf("socket-domain takes one domain")
	}
	return func(t Target) bool { return strings.EqualFold(t.Name, args[0].symbol) }, nil
}

// compileRegex accepts only what profiles in the field use, which excludes counted repetition.
func compileRegex(args []value) (*regexp.Regexp, error) {
	s, err := oneString(args)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{', '}':
			return nil, fmt.Errorf("regex %q has a counted repetition", s)
		}
	}
	return regexp.Compile("(?s)" + s)
}

// network compiles (remote ...) and (local ...).
func network(side string, args []value) (func(Target) bool, error) {
	if len(args) == 0 || args[0].symbol == "" {
		return nil, fmt.Errorf("%s takes a protocol", side)
	}
	proto, local := args[0].symbol, side == "local"
	switch proto {
	case "unix-socket":
		return unixSocket(args[1:])
	case "ip", "ip4", "ip6", "tcp", "udp":
	default:
		return nil, fmt.Errorf("protocol %s is unknown", proto)
	}
	host, port := "*", "*"
	if len(args) > 1 {
		var ok bool
		host, port, ok = strings.Cut(args[1].text, ":")
		if !ok || len(args) > 2 {
			return nil, fmt.Errorf("%s takes one HOST:PORT", side)
		}
	}
	if host != "*" && host != "localhost" {
		return nil, fmt.Errorf("host must be * or localhost in network address: %q", host)
	}
	n, err := strconv.Atoi(port)
	if port != "*" && (err != nil || n < 1 || n > 65535) {
		return nil, fmt.Errorf("port %q is invalid", port)
	}
	return func(t Target) bool {
		return t.Proto != "" && t.Local == local &&
			(strings.HasPrefix(proto, "ip") || proto == t.Proto) &&
			// A local address always counts as localhost.
			(host == "*" || local || t.Host == host) &&
			(port == "*" || n == t.Port)
	}, nil
}

// unixSocket accepts at most one path filter. macOS would ignore a second one, so that is a
// mistake.
func unixSocket(args []value) (func(Target) bool, error) {
	if len(args) == 0 {
		return func(t Target) bool { return t.Path != "" }, nil
	}
	if len(args) > 1 || args[0].filter == nil || !args[0].filter.path {
		return nil, fmt.Errorf("unix-socket takes one path filter")
	}
	return args[0].filter.match, nil
}

func oneString(args []value) (string, error) {
	if len(args) != 1 || !args[0].isString {
		return "", fmt.Errorf("one string is wanted")
	}
	return args[0].text, nil
}
