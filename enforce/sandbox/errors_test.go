package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/policy"
)

// Errors get the types of this package, and keep their text and what else they are.
func TestErrorOf(t *testing.T) {
	gap := &enforce.GapError{Gaps: []enforce.Gap{{Name: "deny", Promise: "nothing is read"}}}
	limit := &supervise.LimitError{Limit: "timeout"}
	output := &supervise.OutputError{Err: fs.ErrClosed}
	wrong := policy.Errors{{Code: policy.CodeValue, Msg: "one"}, {Code: policy.CodePath, Msg: "two"}}
	changed := fmt.Errorf("/file (denied or protected) %w: %w", fs.ErrInvalid, fs.ErrNotExist)
	for _, err := range []error{gap, limit, output, wrong, changed, errors.Join(limit, output, changed)} {
		got := errorOf(err)
		if got.Error() != err.Error() {
			t.Errorf("%q became %q", err, got)
		}
	}
	if _, ok := errors.AsType[*GapError](errorOf(gap)); !ok {
		t.Error("a gap is no GapError")
	}
	if _, ok := errors.AsType[policy.Errors](errorOf(wrong)); !ok {
		t.Error("what is wrong with a policy is no policy.Errors")
	}
	both := errorOf(errors.Join(limit, output))
	_, isLimit := errors.AsType[*LimitError](both)
	_, isOutput := errors.AsType[*OutputError](both)
	if !isLimit || !isOutput {
		t.Errorf("%q: a limit %v, output %v", both, isLimit, isOutput)
	}
}
