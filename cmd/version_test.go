package cmd

import (
	"runtime/debug"
	"testing"
)

// TestVersionOf has what the go command writes in each way of building.
func TestVersionOf(t *testing.T) {
	t.Parallel()
	const whole = "0ee26924466ae2ac8c5670791cc5398183973b30"
	const at = whole + " 1795943848 "
	const here = "$Format:%H %ct %(describe:tags=true,match=v*)$\n"
	stamped := []debug.BuildSetting{{Key: "vcs.revision", Value: whole}, {Key: "vcs.modified", Value: "false"}}
	changed := []debug.BuildSetting{{Key: "vcs.revision", Value: whole}, {Key: "vcs.modified", Value: "true"}}
	const pseudo = "v0.0.0-20261129091728-0ee26924466a"
	for _, c := range []struct {
		way      string
		version  string // as the go command writes it
		settings []debug.BuildSetting
		archived string
		want     versionInfo
	}{
		{"a clone", pseudo, stamped, here, versionInfo{Version: pseudo, Revision: whole}},
		{"a clone with changes", pseudo + "+dirty", changed, here, versionInfo{Version: pseudo + "+dirty", Revision: whole, Modified: true}},
		{"a clone at a tag", "v0.9.1", stamped, here, versionInfo{Version: "v0.9.1", Revision: whole}},
		{"a clone, without stamps", "(devel)", nil, here, versionInfo{Version: "(devel)"}},
		{"go install of a tag", "v0.9.1", nil, here, versionInfo{Version: "v0.9.1"}},
		{"go install of a revision", pseudo, nil, here, versionInfo{Version: pseudo, Revision: "0ee26924466a"}},
		{"an archive of a tag", "(devel)", nil, at + "v0.9.1\n", versionInfo{Version: "v0.9.1", Revision: whole}},
		{"an archive of a pre-release", "(devel)", nil, at + "v1.0.0-rc.1\n", versionInfo{Version: "v1.0.0-rc.1", Revision: whole}},
		{"an archive of a tag with -g", "(devel)", nil, at + "v1.0.0-gamma\n", versionInfo{Version: "v1.0.0-gamma", Revision: whole}},
		{"an archive after a tag with -g", "(devel)", nil, at + "v1.0.0-gamma-3-g0ee2692\n", versionInfo{Version: "v1.0.0-gamma.0.20261129091728-0ee26924466a", Revision: whole}},
		{"an archive of a tag that is no version", "(devel)", nil, at + "v1\n", versionInfo{Version: pseudo, Revision: whole}},
		{"an archive after a tag", "(devel)", nil, at + "v0.9.1-12-g0ee2692\n", versionInfo{Version: "v0.9.2-0.20261129091728-0ee26924466a", Revision: whole}},
		{"an archive without tags", "(devel)", nil, at + "\n", versionInfo{Version: pseudo, Revision: whole}},
		{"an archive by a git that can't describe", "", nil, at + "%(describe:tags=true,match=v*)\n", versionInfo{Version: pseudo, Revision: whole}},
		{"an archive in another repository", "v0.1.0", changed, at + "v0.9.1\n", versionInfo{Version: "v0.9.1", Revision: whole}},
		{"an archive that says nothing", "(devel)", nil, "\n", versionInfo{Version: "(devel)"}},
	} {
		b := &debug.BuildInfo{Main: debug.Module{Version: c.version}, Settings: c.settings}
		if got := versionOf(b, c.archived); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.way, got, c.want)
		}
	}
}
