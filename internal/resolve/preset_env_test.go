package resolve

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/variables"
	"github.com/zsbx/zsbx/policy"
)

// TestPresetEnv checks that no preset asks for variables that scrubbed mode never passes on: that
// would have no effect, and warn the user.
func TestPresetEnv(t *testing.T) {
	for _, info := range presets.All() {
		p, err := policy.Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range partsOf(p) {
			for _, n := range part.Env.Allow {
				if variables.SteersLoader(n.Value) {
					t.Errorf("preset %s: %s steers a loader", info.Name, n.Value)
				}
				if glob.HasMeta(n.Value) {
					t.Logf("preset %s: glob %s", info.Name, n.Value)
				} else if variables.IsSecret(n.Value) && !info.Agent { // an agent's own key
					t.Errorf("preset %s: %s looks like a secret", info.Name, n.Value)
				}
			}
		}
	}
}

// TestStateInPlacesOfSecrets: these programs work in a directory that is a place of secrets.
// Without a variable that moves it they fail, and no rule is proposed.
func TestStateInPlacesOfSecrets(t *testing.T) {
	p, err := policy.Preset("state")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ANSIBLE_LOCAL_TEMP", "ANSIBLE_REMOTE_TEMP", "PERL_CPANM_HOME"} {
		if !slices.ContainsFunc(p.Env.Set, func(v policy.Named) bool { return v.Name == name }) {
			t.Error(name, "is not set")
		}
	}
}
