package cmd

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion(a *app) *cobra.Command {
	c := command("version", func([]string) error { return a.printVersion() })
	c.Args = noArgs
	c.Flags().BoolVar(&a.say.json, "json", false, "print JSON")
	return c
}

// archived has the revision, its time in seconds and its tag, if it has one, in an archive of the
// sources that "git archive" made (export-subst in gitattributes(5)). Elsewhere it names none.
//
//go:embed archived.txt
var archived string

// printVersion prints what this binary was built from.
func (a *app) printVersion() error {
	v := versionInfo{}
	if b, ok := debug.ReadBuildInfo(); ok {
		v = versionOf(b, archived)
	}
	v.Go = runtime.Version()
	v.OS = runtime.GOOS
	v.Arch = runtime.GOARCH
	t := &table{}
	t.line("zsbx %s %s/%s %s", v.Version, v.OS, v.Arch, v.Go)
	switch {
	case v.Modified:
		t.line("revision %s, modified", v.Revision)
	case v.Revision != "":
		t.line("revision %s", v.Revision)
	}
	return a.show(v, t)
}

// versionOf takes the version and the revision from an archive, if this is one, else from what the go
// command wrote into the binary. Where an archive is unpacked may be in a repository of something else.
func versionOf(b *debug.BuildInfo, archived string) versionInfo {
	if version, revision := archivedVersion(archived); version != "" {
		return versionInfo{Version: version, Revision: revision}
	}
	v := versionInfo{Version: cmp.Or(b.Main.Version, "(devel)")}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if v.Revision == "" && module.IsPseudoVersion(v.Version) {
		v.Revision, _ = module.PseudoVersionRev(v.Version)
	}
	return v
}

// archivedVersion returns the version that the go command gives a revision (https://go.dev/ref/mod#pseudo-versions),
// "" if archived names none.
func archivedVersion(archived string) (version, revision string) {
	var seconds int64
	var tag string
	n, _ := fmt.Sscan(archived, &revision, &seconds, &tag)
	if n < 2 || len(revision) < shortRevision {
		return "", ""
	}
	since := described.FindStringSubmatch(tag)
	switch {
	case since != nil:
		tag = since[1]
	case semver.Canonical(tag) == tag && tag != "":
		return tag, revision
	default:
		tag = ""
	}
	major := cmp.Or(semver.Major(tag), "v0")
	return module.PseudoVersion(major, tag, time.Unix(seconds, 0).UTC(), revision[:shortRevision]), revision
}

// described is what git-describe(1) says of a commit after a tag: how many are in between, and its revision.
var described = regexp.MustCompile(`^(.+)-[0-9]+-g[0-9a-f]+$`)

// shortRevision is the length of a revision in a pseudo-version.
const shortRevision = 12
