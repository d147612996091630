package policy

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/zsbx/zsbx/policy/units"
)

// Limits bound a run. A zero value means no limit.
type Limits struct {
	Timeout       time.Duration // the command is ended after that time; exit status 124
	TimeoutFrom   Origin
	MaxOutput     int64 // bytes of stdout and stderr together
	MaxOutputFrom Origin

	// Memory are bytes that all processes of the session have together: their
	// own, files in memory, and what the kernel holds for them (cgroups(7)).
	Memory     int64
	MemoryFrom Origin
	Pids       int64 // processes and threads at a time
	PidsFrom   Origin
	CPU        int64 // thousandths of one processor's time
	CPUFrom    Origin
}

// Limit is one of a Limits, as policies and flags have it.
type Limit struct {
	Key   string // in [limits]; the flag has hyphens for underscores
	Value *int64 // 0 for none
	From  *Origin

	parse func(string) (int64, error)
	text  func(int64) string // what parse reads
	noun  string
}

// All lists the limits; they can be changed through it.
func (l *Limits) All() []Limit {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []Limit{
		{"timeout", (*int64)(&l.Timeout), &l.TimeoutFrom, parseTime, func(n int64) string { return time.Duration(n).String() }, "time"},
		{"max_output", &l.MaxOutput, &l.MaxOutputFrom, units.ParseSize, number, "size"},
		{"memory", &l.Memory, &l.MemoryFrom, units.ParseSize, number, "size"},
		{"pids", &l.Pids, &l.PidsFrom, parseCount, number, "number"},
		{"cpu", &l.CPU, &l.CPUFrom, units.ParseCPU, units.FormatCPU, "number"},
	}
}

// Flag is the flag that sets the limit.
func (l *Limit) Flag() string { return "--" + strings.ReplaceAll(l.Key, "_", "-") }

// Text is the limit as Parse reads it.
func (l *Limit) Text() string { return l.text(*l.Value) }

// Said reports whether the limit was given at all: 0 may be written to lift an
// earlier one.
func (l *Limit) Said() bool { return *l.Value != 0 || *l.From != Origin{} }

// Parse sets the limit from what somebody wrote.
func (l *Limit) Parse(text string, from Origin) error {
	n, err := l.parse(text)
	if err == nil {
		*l.Value, *l.From = n, from
	}
	return err
}

func parseTime(s string) (int64, error) {
	d, err := units.ParseTime(s)
	return int64(d), err
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New("a number of processes and threads is needed, such as 200")
	}
	return int64(n), nil
}
