package policy

import "testing"

// TestLimitsAll: each limit is set by its key, and lifted by 0.
func TestLimitsAll(t *testing.T) {
	var l Limits
	for _, one := range l.All() {
		if one.Said() {
			t.Errorf("%s is given", one.Key)
		}
		if err := one.Parse("3", Origin{Source: "--" + one.Key}); err != nil || !one.Said() {
			t.Errorf("%s: %v", one.Key, err)
		}
	}
	if l.Timeout == 0 || l.MaxOutput != 3 || l.Memory != 3 || l.Pids != 3 || l.CPU != 3000 || l.CPUFrom.Source != "--cpu" || l.MaxOutputFrom.Source != "--max_output" {
		t.Errorf("%+v", l)
	}
	lifted := l
	for _, one := range lifted.All() {
		if err := one.Parse("0", Origin{Source: "again"}); err != nil || *one.Value != 0 || !one.Said() {
			t.Errorf("%s: %v", one.Key, err)
		}
	}
	sum := Merge(&Policy{Limits: l}, &Policy{Limits: lifted})
	if sum.Limits != lifted {
		t.Errorf("%+v", sum.Limits)
	}
	odd := Limits{Timeout: -1, MaxOutput: -1, Memory: -1, Pids: 1 << 40, CPU: 5} // no text can express these, and nothing drops them
	if sum := Merge(&Policy{Limits: odd}); sum.Limits != odd {
		t.Errorf("%+v", sum.Limits)
	}
	if ok, w := (&Policy{Limits: lifted}).OnlyTightens(&Policy{Limits: l}); ok || len(w) < 5 {
		t.Errorf("lifting limits asks for no more: %v", w)
	}
	if ok, w := (&Policy{Limits: l}).OnlyTightens(&Policy{}); !ok {
		t.Errorf("limits ask for more: %v", w)
	}
}
