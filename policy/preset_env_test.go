package policy

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/glob"
)

// TestPresetEnv checks that no preset asks for variables that scrubbed mode never passes on: that
// would have no effect, and warn the user.
func TestPresetEnv(t *testing.T) {
	for _, info := range Presets() {
		p, err := Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.parts() {
			for _, n := range part.Env.Allow {
				if steersLoader(n.Value) {
					t.Errorf("preset %s: %s steers a loader", info.Name, n.Value)
				}
				if glob.HasMeta(n.Value) {
					t.Logf("preset %s: glob %s", info.Name, n.Value)
				} else if SecretName(n.Value) && !info.agent { // an agent's own key
					t.Errorf("preset %s: %s looks like a secret", info.Name, n.Value)
				}
			}
		}
	}
}

// TestStateInPlacesOfSecrets: these programs work in a directory that is a place of secrets.
// Without a variable that moves it they fail, and no rule is proposed.
func TestStateInPlacesOfSecrets(t *testing.T) {
	p, err := Preset("state")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ANSIBLE_LOCAL_TEMP", "ANSIBLE_REMOTE_TEMP", "PERL_CPANM_HOME"} {
		if !slices.ContainsFunc(p.Env.Set, func(v Named) bool { return v.Name == name }) {
			t.Error(name, "is not set")
		}
	}
}
