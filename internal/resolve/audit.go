package resolve

import (
	"cmp"
	"fmt"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// AuditLog returns the log that the policy asks for on one machine, with the defaults, or
// nil. Dir is absolute; it need not exist, and no link is followed.
func AuditLog(p *policy.Policy, h host.Host) (*policy.Audit, error) {
	a := p.AuditOn(h.OS)
	if a == (policy.Audit{}) {
		return nil, nil
	}
	dir, err := (&view{Host: h}).absolute(cmp.Or(a.Dir.Value, "${XDG_STATE_HOME:-~/.local/state}/zsbx/audit"))
	if err != nil {
		msg := fmt.Sprintf("the audit log's directory %q", a.Dir.Value)
		return nil, policy.Errors{{Origin: a.Dir.Origin, Code: policy.CodeValue, Msg: msg, Err: err}}
	}
	a.Dir.Value = dir
	a.Keep.Value = cmp.Or(a.Keep.Value, "90")
	return &a, nil
}
