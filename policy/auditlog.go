package policy

import (
	"cmp"
	"fmt"
	"strconv"
)

// Audit asks for a log of what ran: package track/audit writes it. There is one
// when anything is said about it. A Value of "" is not said.
type Audit struct {
	Dir      Named // as in Rule.Path; below zsbx's state directory when not said
	Keep     Named // how many days files are kept, "0" for ever
	Required Named // "true": no command runs without its line
}

const (
	// defaultAuditDir lies in zsbx's own directory, which no command can write.
	defaultAuditDir = "${XDG_STATE_HOME:-~/.local/state}/zsbx/audit"
	// defaultAuditKeep is how many days files are kept.
	defaultAuditKeep = 90
)

// AuditLog is an Audit as one machine understands it.
type AuditLog struct {
	Dir      string // absolute; it need not exist
	Keep     int    // days, 0 for ever
	Required bool
}

// AuditLog is the log that the policy asks for, and nil for none. Only the
// path is looked at, as it is written.
func (p *Policy) AuditLog(h Host) (*AuditLog, error) {
	if p.Audit == (Audit{}) && p.forSystem(h.OS).Audit == (Audit{}) {
		return nil, nil
	}
	a := p.on(h.OS).Audit
	dir, err := h.absolute(cmp.Or(a.Dir.Value, defaultAuditDir))
	if err != nil {
		return nil, Errors{{Origin: a.Dir.Origin, Code: CodeValue, Msg: fmt.Sprintf("the audit log's directory %q", a.Dir.Value), Err: err}}
	}
	l := &AuditLog{Dir: dir, Keep: defaultAuditKeep, Required: a.Required.Value == "true"}
	if a.Keep.Value != "" {
		l.Keep, err = strconv.Atoi(a.Keep.Value)
	}
	return l, err
}
