package object

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Pid int `json:"pid"`
}

type outer struct {
	X int `json:"x,omitempty"`
}

// TestOf: encoding/json writes the same, once nil lists are made empty.
func TestOf(t *testing.T) {
	type all struct {
		inner
		*outer
		Pointer  *inner                      `json:"pointer"`
		Nothing  any                         `json:"nothing"`
		Any      any                         `json:"any"`
		Map      map[string]map[string][]any `json:"map,omitempty"`
		Raw      json.RawMessage             `json:"raw,omitempty"`
		Small    uint16                      `json:"small"`
		Float    float64                     `json:"float"`
		Zero     time.Time                   `json:"zero,omitzero"`
		Time     time.Time                   `json:"time"`
		List     []string                    `json:"list"`
		Left     []string                    `json:"left,omitempty"`
		Hidden   string                      `json:"-"`
		Untagged bool
		unseen   int
	}
	now := time.Now().UTC()
	for _, v := range []all{
		{inner: inner{8}, Time: now, List: []string{}, Hidden: "x", unseen: 1},
		{inner: inner{7}, outer: &outer{}, Pointer: &inner{}, Any: []string{"a<b", `"\`}, Raw: json.RawMessage(`{"k":[1]}`), Small: 65535, Float: 0.25,
			Map: map[string]map[string][]any{"net": {"b": {8080}, "a": {"x"}}}, Zero: now, Time: now, List: []string{"", "é\n\t"}, Left: []string{}, Untagged: true},
		{inner: inner{9}, outer: &outer{3}, Time: now, List: []string{"x"}, Left: []string{"y"}, Any: 1e9},
	} {
		var want strings.Builder
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got := string(Of(&v)) + "\n"; got != want.String() {
			t.Errorf("got  %swant %s", got, want.String())
		}
	}
	if got := string(Of([]string(nil))); got != "[]" {
		t.Errorf("no list is %s", got)
	}
}
