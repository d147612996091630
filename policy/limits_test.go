package policy

import (
	"testing"
)

// TestLimitsAll: each limit is set by its key, and lifted by 0.
func TestLimitsAll(t *testing.T) {
	var set, lifted Policy
	for _, key := range []string{"timeout", "max_output", "memory", "pids", "cpu"} {
		for text, p := range map[string]*Policy{"3": &set, "0": &lifted} {
			if err := p.Put("limits."+key, Named{Value: text, Origin: Origin{Source: "--" + key}}); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	l := set.Limits
	if l.Timeout.Value != 3e9 || l.MaxOutput.Value != 3 || l.Memory.Value != 3 || l.Pids.Value != 3 || l.CPU != (Limit{3000, Origin{Source: "--cpu"}}) {
		t.Errorf("%+v", l)
	}
	if all := l.All(); len(all) != 5 || all[0] != (Named{Name: "timeout", Value: "3s", Origin: Origin{Source: "--timeout"}}) || all[4].Value != "3" {
		t.Errorf("%+v", all)
	}
	if all := lifted.Limits.All(); all != nil {
		t.Errorf("0 is a limit: %+v", all)
	}
	if sum := Merge(&set, &lifted); sum.Limits != lifted.Limits {
		t.Errorf("%+v", sum.Limits)
	}
	odd := Limits{Timeout: Limit{Value: -1}, MaxOutput: Limit{Value: -1}, Memory: Limit{Value: -1}, Pids: Limit{Value: 1 << 40}, CPU: Limit{Value: 5}} // no text can express these, and nothing drops them
	if sum := Merge(&Policy{Limits: odd}); sum.Limits != odd {
		t.Errorf("%+v", sum.Limits)
	}
	if ok, w := lifted.OnlyTightens(&set); ok || len(w) < 5 {
		t.Errorf("lifting limits asks for no more: %v", w)
	}
	if ok, w := set.OnlyTightens(&Policy{}); !ok {
		t.Errorf("limits ask for more: %v", w)
	}
}
