package policy

import (
	"reflect"
	"testing"
)

// TestPut: a key's values add up, a wrong port or limit is left out, and an empty list of ports
// still counts.
func TestPut(t *testing.T) {
	p := &Policy{}
	from := Origin{Source: "--x"}
	for _, tt := range []struct {
		key, value string
		ok         bool
	}{
		{"fs.ro", "a", true}, {"fs.rw_noexec", "b", true}, {"fs.system.read_only", "c", true}, {"presets", "go", true}, {"env.set", "A=b=c", true},
		{"net.connect_tcp", "x", false}, {"net.bind_tcp", "80", true}, {"net.bind_tcp", "0x50", false}, {"net.bind_tcp", "0443", true},
		{"net.allow", "false", true}, {"limits.pids", "7", true}, {"limits.timeout", "soon", false}, {"env.mode", "vars", true}, {"fs.home", "private", true}, {"fs.writes", "try", true},
	} {
		if err := p.Put(tt.key, Named{Value: tt.value, Origin: from}); (err == nil) != tt.ok {
			t.Errorf("%s %s: %v", tt.key, tt.value, err)
		}
	}
	want := &Policy{
		Presets: []Named{{Value: "go", Origin: from}}, Private: Private{Home: Named{Value: "private", Origin: from}},
		FS: FS{
			Rules:  []Rule{{Path: "a", Access: Read, Origin: from}, {Path: "b", Access: Read | Write, Origin: from}},
			Writes: Named{Value: "try", Origin: from},
			System: System{ReadOnly: []Rule{{Path: "c", Access: Read, Origin: from}}},
		},
		Net: Net{Allow: Named{Value: "false", Origin: from}, ConnectTCP: []Port{}, BindTCP: []Port{{Number: 80, Origin: from}, {Number: 443, Origin: from}}},
		Env: Env{Mode: Named{Value: EnvVars, Origin: from}, Set: []Named{{Name: "A", Value: "b=c", Origin: from}}}, Limits: Limits{Pids: Limit{7, from}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
}
