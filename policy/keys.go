package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tree"
	"github.com/zsbx/zsbx/internal/units"
	"github.com/zsbx/zsbx/internal/variables"
)

// What a policy file can say is one table. Decoding, writing, merging, comparing and
// hashing go through it, so that none of them forgets a key.

// key is one key of a policy file.
type key struct {
	name   string // with its tables: "fs.ro"
	kind   keyKind
	at     func(*Policy) any  // where a Policy has it
	check  func(string) error // checks each string; nil for none
	wider  widens             // nil if it never asks for more
	access Access             // of paths
}

// keyKind is the kind of value that a key has.
type keyKind uint8

const (
	pathList     keyKind = iota // strings, or tables with path, optional and create
	socketList                  // likewise, without create
	hostList                    // strings, or tables with host, private and ech; an empty list counts, too
	textList                    // strings
	portList                    // integers; an empty list counts, too
	listTable                   // lists of strings by name
	textTable                   // strings by name
	pathCategory                // paths as in pathList; an empty list counts, too
	scalar                      // a string
	number                      // an integer
	boolean                     // true or false
	span                        // a time: a string or an integer, like the limits below
	size                        // bytes
	count                       // a number of things
	processors                  // a number of processors, with a fraction
)

// overrides reports whether the value in the strongest policy counts. The others are added up.
func (k keyKind) overrides() bool { return k == textTable || k == pathCategory || k.single() }

// single reports whether a key has one value.
func (k keyKind) single() bool { return k == scalar || k == number || k == boolean || k.limit() }

// limit reports whether a value is a limit.
func (k keyKind) limit() bool { return k == span || k == size || k == count || k == processors }

// measures say how a limit of each kind is written.
var measures = [...]struct {
	noun  string
	parse func(string) (int64, error)
	text  func(int64) string // what parse reads
}{
	span: {"time", func(s string) (int64, error) { d, err := units.ParseTime(s); return int64(d), err },
		func(n int64) string { return time.Duration(n).String() }},
	size:       {"size", units.ParseSize, decimal},
	count:      {"number", units.ParseCount, decimal},
	processors: {"number", units.ParseCPU, func(n int64) string { return fmt.Sprint(float64(n) / units.Processor) }},
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// leaf returns the kind that a value has in a file.
func (k *key) leaf() tree.Kind {
	switch k.kind {
	case boolean:
		return tree.Bool
	case portList, number:
		return tree.Integer
	}
	return tree.String
}

// widens reports whether a value asks for more than before, the value in a weaker policy,
// or "" if that has none.
type widens func(after Named, before string, base *weaker) bool

// weaker is what was merged before a policy.
type weaker struct {
	*Policy
	hosts func() *rule.Set // its Net.Hosts
}

func always(Named, string, *weaker) bool { return true }

// unshares reports whether something private becomes shared.
func unshares(after Named, before string, _ *weaker) bool {
	return before == wordPrivate && after.Value == wordShared
}

// undoesTry reports whether what would be written into a layer is written at once.
func undoesTry(after Named, before string, _ *weaker) bool {
	return before == wordTry && after.Value == wordDirect
}

// looser reports whether an environment mode lets more through. Mode "vars" does if base
// names variables that control a loader, which scrubbed mode would hold back.
func looser(after Named, before string, base *weaker) bool {
	index := slices.Index(syntax.EnvModes, after.Value)
	return index > slices.Index(syntax.EnvModes, cmp.Or(before, EnvScrubbed)) ||
		after.Value == EnvVars && slices.ContainsFunc(base.Env.Allow, steersLoader)
}

// steersLoader reports whether a variable makes programs load other code.
func steersLoader(n Named) bool { return variables.SteersLoader(n.Value) }

// keys are in the order in which they are written to files and named in messages.
var keys = [...]key{
	{"presets", textList, func(p *Policy) any { return &p.Presets }, presets.Check, always, 0},
	{"fs.ro", pathList, fsRules, syntax.CheckPath, always, Read},
	{"fs.rox", pathList, fsRules, syntax.CheckPath, always, Read | Exec},
	{"fs.rw", pathList, fsRules, syntax.CheckPath, always, Read | Write | Exec},
	{"fs.rw_noexec", pathList, fsRules, syntax.CheckPath, always, Read | Write},
	{"fs.deny", textList, func(p *Policy) any { return &p.FS.Deny }, syntax.CheckDenial, nil, 0},
	{"fs.home", scalar, func(p *Policy) any { return &p.Private.Home }, syntax.CheckShared, unshares, 0},
	{"fs.writes", scalar, func(p *Policy) any { return &p.FS.Writes }, syntax.CheckWrites, undoesTry, 0},
	{"fs.system.executable", pathCategory, func(p *Policy) any { return &p.FS.System.Executable }, syntax.CheckPath,
		always, Read | Exec},
	{"fs.system.read_only", pathCategory, func(p *Policy) any { return &p.FS.System.ReadOnly }, syntax.CheckPath,
		always, Read},
	{"fs.system.read_write", pathCategory, func(p *Policy) any { return &p.FS.System.ReadWrite }, syntax.CheckPath,
		always, Read | Write},
	{"net.allow", boolean, func(p *Policy) any { return &p.Net.Allow }, nil,
		func(after Named, _ string, _ *weaker) bool { return after.Value == "true" }, 0},
	{"net.hosts", hostList, func(p *Policy) any { return &p.Net.Hosts }, nil, opensHost, 0},
	{"net.deny_hosts", textList, func(p *Policy) any { return &p.Net.DenyHosts }, checkDenial, nil, 0},
	{"net.deny", scalar, func(p *Policy) any { return &p.Net.DenyBy }, syntax.CheckDenyBy, nil, 0},
	{"net.connect_tcp", portList, func(p *Policy) any { return &p.Net.ConnectTCP }, syntax.CheckPort, always, 0},
	{"net.bind_tcp", portList, func(p *Policy) any { return &p.Net.BindTCP }, syntax.CheckPort, always, 0},
	{"net.unix", socketList, func(p *Policy) any { return &p.Net.Unix }, syntax.CheckPath, always, 0},
	{"env.mode", scalar, func(p *Policy) any { return &p.Env.Mode }, syntax.CheckEnvMode, looser, 0},
	{"env.allow", textList, func(p *Policy) any { return &p.Env.Allow }, syntax.CheckEnvGlob, always, 0},
	{"env.set", textTable, func(p *Policy) any { return &p.Env.Set }, syntax.CheckEnvValue, always, 0},
	{"limits.timeout", span, func(p *Policy) any { return &p.Limits.Timeout }, nil, always, 0},
	{"limits.max_output", size, func(p *Policy) any { return &p.Limits.MaxOutput }, nil, always, 0},
	{"limits.memory", size, func(p *Policy) any { return &p.Limits.Memory }, nil, always, 0},
	{"limits.pids", count, func(p *Policy) any { return &p.Limits.Pids }, nil, always, 0},
	{"limits.cpu", processors, func(p *Policy) any { return &p.Limits.CPU }, nil, always, 0},
	{"process.pids", scalar, func(p *Policy) any { return &p.Private.Pids }, syntax.CheckShared, unshares, 0},
	{"guard.lists", textList, func(p *Policy) any { return &p.Guard.Lists }, syntax.CheckListName, nil, 0},
	{"guard.words", listTable, func(p *Policy) any { return &p.Guard.Words }, syntax.CheckGuardWords, nil, 0},
	// A stranger must not decide where the log goes, or when it is removed.
	{"audit.dir", scalar, func(p *Policy) any { return &p.Audit.Dir }, syntax.CheckPath, always, 0},
	{"audit.keep", number, func(p *Policy) any { return &p.Audit.Keep }, syntax.CheckDays, always, 0},
	{"audit.required", boolean, func(p *Policy) any { return &p.Audit.Required }, nil,
		func(after Named, before string, _ *weaker) bool { return after.Value == "false" && before == "true" }, 0},
}

func fsRules(p *Policy) any { return &p.FS.Rules }

// keyNamed finds a key, which must exist.
func keyNamed(name string) *key {
	return &keys[slices.IndexFunc(keys[:], func(k key) bool { return k.name == name })]
}

// system yields the lists of FS.System with their keys.
func (p *Policy) system(yield func(*key, *[]Rule) bool) {
	for i := range keys {
		if k := &keys[i]; k.kind == pathCategory && !yield(k, k.at(p).(*[]Rule)) {
			return
		}
	}
}

// Rules yields all rules for paths. The system's categories come first, each with its
// access.
func (p *Policy) Rules(yield func(Rule) bool) {
	for k, rules := range p.system {
		for _, r := range *rules {
			r.Access = k.access
			if !yield(r) {
				return
			}
		}
	}
	for _, r := range p.FS.Rules {
		if !yield(r) {
			return
		}
	}
}

// values returns what a policy has for a key, or nil if it has nothing.
func (k *key) values(p *Policy) (list []Named) {
	switch at := k.at(p).(type) {
	case *[]Rule:
		if k.kind == pathCategory && *at != nil {
			list = []Named{}
		}
		for i := range *at {
			if r := &(*at)[i]; k.kind == pathCategory || r.Access == k.access && !r.Data {
				list = append(list, Named{
					Value:    r.Path,
					Optional: r.Optional && !r.Create,
					Create:   r.Create,
					Origin:   r.Origin,
				})
			}
		}
	case *[]Named:
		list = *at
		if k.kind == textTable {
			list = lastOfEach(list)
		}
		if len(list) == 0 {
			return nil
		}
	case *[]Host:
		if *at != nil {
			list = []Named{}
		}
		for i := range *at {
			list = append(list, (*at)[i].named())
		}
	case *[]Port:
		if *at != nil {
			list = []Named{}
		}
		for _, port := range *at {
			list = append(list, Named{Value: strconv.Itoa(int(port.Number)), Origin: port.Origin})
		}
	case *Named:
		if at.Value != "" {
			list = []Named{*at}
		}
	case *Limit:
		if *at != (Limit{}) {
			list = []Named{{Value: measures[k.kind].text(at.Value), Origin: at.From}}
		}
	}
	return list
}

// Put adds values to a list in the policy, or sets a single value. name is a key of policy
// files, such as "fs.ro". Values of variables are NAME=VALUE. Of a host, Name has the marks:
// "private", "ech". A wrong port, host or limit is an error and left out, and so is an unknown
// key. Other mistakes are found when the policy is resolved or written.
func (p *Policy) Put(name string, values ...Named) (err error) {
	if !slices.ContainsFunc(keys[:], func(k key) bool { return k.name == name }) {
		return &Error{Code: CodeUnknownKey, Msg: fmt.Sprintf("unknown key %q", name)}
	}
	k := keyNamed(name)
	list := make([]Named, 0, len(values))
	for _, v := range values {
		var bad error
		switch k.kind {
		case textTable:
			v.Name, v.Value, _ = strings.Cut(v.Value, "=")
		case portList:
			var n uint16
			n, bad = units.ParsePort(v.Value)
			v.Value = strconv.Itoa(int(n)) // put reads 0443 as octal, as TOML does not
		}
		if k.kind == hostList || k.name == "net.deny_hosts" {
			bad = k.wrong(v)
		}
		err = cmp.Or(err, bad)
		if bad == nil {
			list = append(list, v)
		}
	}
	return cmp.Or(err, k.put(p, list))
}

// put adds values to a key's list, or sets its single value. Only a limit can still be
// wrong.
func (k *key) put(p *Policy, list []Named) (err error) {
	switch at := k.at(p).(type) {
	case *[]Rule:
		if k.kind == pathCategory && *at == nil {
			*at = []Rule{}
		}
		*at = slices.Grow(*at, len(list))
		for _, v := range list {
			*at = append(*at, Rule{
				Path:     v.Value,
				Access:   k.access,
				Optional: v.Optional || v.Create,
				Create:   v.Create,
				Origin:   v.Origin,
			})
		}
	case *[]Named:
		*at = append(*at, list...)
	case *[]Host:
		if *at == nil {
			*at = []Host{}
		}
		for _, v := range list {
			*at = append(*at, hostOf(v))
		}
	case *[]Port:
		if *at == nil {
			*at = []Port{}
		}
		for _, v := range list {
			n, _ := strconv.ParseInt(v.Value, 0, 64)
			*at = append(*at, Port{Number: uint16(n), Origin: v.Origin})
		}
	case *Named:
		*at = Named{Value: list[0].Value, Origin: list[0].Origin}
	case *Limit:
		var n int64
		n, err = measures[k.kind].parse(list[0].Value)
		if err == nil {
			*at = Limit{n, list[0].Origin}
		}
	}
	return err
}

// merge adds what p has for a key to what sum has, or replaces it if the key does not add
// up. FS.Rules are left to the caller.
func (k *key) merge(sum, p *Policy) {
	switch to := k.at(sum).(type) {
	case *[]Rule:
		if from := *k.at(p).(*[]Rule); k.kind == pathCategory && from != nil {
			*to = slices.Clone(from)
		}
	case *[]Named:
		*to = append(*to, *k.at(p).(*[]Named)...)
	case *[]Port:
		*to = addUp(*to, *k.at(p).(*[]Port))
	case *[]Host:
		*to = addUp(*to, *k.at(p).(*[]Host))
	case *Named:
		*to = cmp.Or(*k.at(p).(*Named), *to)
	case *Limit: // as it is: a program may set what no text can
		*to = cmp.Or(*k.at(p).(*Limit), *to)
	}
}

// addUp adds a list to another one. An empty list counts, too: only the sum of two that are nil is.
func addUp[T any](to, from []T) []T {
	if from == nil {
		return to
	}
	return append(append([]T{}, to...), from...)
}

// All returns the limits other than 0 as Put reads them, by the names of their keys.
func (l *Limits) All() (all []Named) {
	if *l == (Limits{}) {
		return nil
	}
	p := &Policy{Limits: *l}
	for i := range keys {
		k := &keys[i]
		if at, is := k.at(p).(*Limit); is && at.Value > 0 {
			all = append(all, Named{
				Name:   strings.TrimPrefix(k.name, "limits."),
				Value:  measures[k.kind].text(at.Value),
				Origin: at.From,
			})
		}
	}
	return all
}

// lastOfEach returns the last value of each variable, sorted by name.
func lastOfEach(vars []Named) []Named {
	vars = slices.Clone(vars)
	slices.Reverse(vars)
	slices.SortStableFunc(vars, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(vars, func(a, b Named) bool { return a.Name == b.Name })
}
