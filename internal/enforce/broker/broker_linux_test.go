package broker

import (
	"testing"
	"time"
)

// TestCrowded: a call that finds all goroutines blocked is answered once another has ended its own, also if that one
// leads from then on. The control: none does.
func TestCrowded(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{true, false} {
		b := &Broker{blocked: maxBlocked, vacant: true}
		if ends {
			time.AfterFunc(4*patience, func() { b.leadOn() })
		}
		if b.crowded() == ends {
			t.Errorf("another has ended its call: %t, crowded: %t", ends, ends)
		}
	}
}
