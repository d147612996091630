package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what version prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion(a *app) command {
	c := &cobra.Command{
		Use:     "version [--json]",
		Short:   "Print the version",
		Long:    "Print the version, and the commit and the Go release that zsbx was built from.",
		Example: "  zsbx version --json",
		Args:    noArgs,
	}
	asJSON := c.Flags().Bool("json", false, "print JSON")
	c.RunE = func(*cobra.Command, []string) error { return a.printVersion(*asJSON) }
	return command{Command: c}
}

func (a *app) printVersion(asJSON bool) error {
	v := thisVersion()
	if asJSON {
		return a.printJSON(v)
	}
	rev := ""
	if v.Revision != "" {
		rev = " (" + v.Revision[:min(12, len(v.Revision))] + ")"
	}
	_, err := fmt.Fprintf(a.stdout, "zsbx %s%s %s/%s %s\n", v.Version, rev, v.OS, v.Arch, v.Go)
	return writeErr(err)
}

// thisVersion reads what the go command wrote into the binary.
func thisVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if b.Main.Version != "" {
		v.Version = b.Main.Version
	}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
