package cmd

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestPackageScripts: what packages run keeps the profile for AppArmor while one of their versions is installed,
// and never touches one that somebody else wrote. The paths and apparmor_parser are this test's.
func TestPackageScripts(t *testing.T) {
	t.Parallel()
	sh := testkit.NeedProgram(t, "sh")
	root := t.TempDir()
	profile := filepath.Join(root, "etc/apparmor.d/zsbx")
	cached := filepath.Join(root, "var/cache/apparmor/1a2b.0/zsbx")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "bin/apparmor_parser"), "#!"+sh+"\n")
	shipped := readPage(t, "../scripts/packages/apparmor")
	write(filepath.Join(root, "usr/share/zsbx/apparmor"), shipped)
	moved := strings.NewReplacer("/etc/", root+"/etc/", "/usr/share/", root+"/usr/share/",
		"/var/", root+"/var/", "/sys/", root+"/sys/")
	run := func(script string, args ...string) string {
		t.Helper()
		name := filepath.Join(root, script)
		write(name, moved.Replace(readPage(t, "../scripts/packages/"+script)))
		c := exec.Command(sh, append([]string{name}, args...)...)
		c.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", script, args, err, out)
		}
		return string(out)
	}

	for _, arg := range []string{"upgrade", "purge", "1"} { // of dpkg, dpkg, rpm
		write(profile, shipped)
		run("removed.sh", arg)
		if readPage(t, profile) != shipped {
			t.Errorf("%s: the profile is gone", arg)
		}
	}
	for _, arg := range []string{"remove", "0", "1.0.0-r1", "1.0.0-1"} { // of dpkg, rpm, apk, pacman
		write(profile, shipped+"# of an older version\n")
		run("installed.sh", arg)
		if readPage(t, profile) != shipped {
			t.Errorf("%s: the profile is not the package's", arg)
		}
		write(cached, "compiled")
		run("removed.sh", arg)
		for _, name := range []string{profile, cached} {
			if _, err := os.Stat(name); !os.IsNotExist(err) {
				t.Errorf("%s: %s: %v", arg, name, err)
			}
		}
		const other = "profile zsbx /home/me/zsbx flags=(unconfined) { userns, }\n"
		write(profile, other)
		if out := run("installed.sh", arg); !strings.Contains(out, "stays") || readPage(t, profile) != other {
			t.Errorf("%s: another profile was replaced: %s", arg, out)
		}
		run("removed.sh", arg)
		if readPage(t, profile) != other {
			t.Errorf("%s: another profile was removed", arg)
		}
	}
	if err := os.RemoveAll(filepath.Join(root, "etc")); err != nil {
		t.Fatal(err)
	}
	run("installed.sh", "configure") // apparmor_parser without its directory
}

// TestPackagedLinks: each link of a document in the archives leads to what is in the archives, too, or is a whole
// address. What has the address of this repository exists in it. The changelog is alone in the packages.
func TestPackagedLinks(t *testing.T) {
	var config struct {
		Archives []struct{ Files []struct{ Src string } }
	}
	if err := yaml.Unmarshal([]byte(readPage(t, "../.goreleaser.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	packed := make(map[string]bool) // files, and the directories that they are in
	var pages []string
	for _, f := range config.Archives[0].Files {
		found, err := filepath.Glob(filepath.Join("..", f.Src))
		if err != nil || found == nil {
			t.Fatalf("%s: %v, %v", f.Src, found, err)
		}
		for _, top := range found {
			err := filepath.WalkDir(top, func(name string, e os.DirEntry, err error) error {
				if filepath.Ext(name) == ".md" {
					pages = append(pages, name)
				}
				packed[name] = true
				packed[filepath.Dir(name)] = true
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Contains(pages, "../docs/recipes/ci.md") {
		t.Fatalf("the recipes are not packed: %q", pages)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)`)
	const here = "https://github.com/zsbx/zsbx/blob/main/"
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(readPage(t, page), -1) {
			file, isHere := strings.CutPrefix(m[1], here)
			switch {
			case isHere:
				if _, err := os.Stat(filepath.Join("..", file)); err != nil {
					t.Errorf("%s links to %s: %v", page, m[1], err)
				}
			case strings.Contains(m[1], "://"):
			case filepath.Base(page) == "CHANGELOG.md" || !packed[filepath.Join(filepath.Dir(page), m[1])]:
				t.Errorf("%s links to %s, which is not packed with it", page, m[1])
			}
		}
	}
}

// TestActionsPinned: workflows name the actions of others by commit, with the tag in a comment. A tag can be moved.
func TestActionsPinned(t *testing.T) {
	files, err := filepath.Glob("../.github/*/*.yml")
	inner, err2 := filepath.Glob("../.github/actions/*/*.yml")
	if err != nil || err2 != nil || len(files) == 0 || len(inner) == 0 {
		t.Fatal(files, inner, err, err2)
	}
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^(\./\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	seen := 0
	for _, f := range append(files, inner...) {
		for _, m := range uses.FindAllStringSubmatch(readPage(t, f), -1) {
			seen++
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s uses %s", f, m[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d uses of actions were found", seen)
	}
}

// TestVendorHash: the flake has the hash of the modules as nix computes it: SHA-256 of an archive in its format (NAR)
// of what "go mod vendor" writes. The same lines gave the hashes that nixpkgs has for gofumpt 0.9.0, gotestsum
// 1.12.2 and shfmt 3.14.0.
func TestVendorHash(t *testing.T) {
	t.Parallel()
	vendor := filepath.Join(t.TempDir(), "vendor")
	c := exec.Command(testkit.NeedProgram(t, "go"), "mod", "vendor", "-o", vendor)
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sum := sha256.New()
	narText(t, sum, "nix-archive-1")
	narNode(t, sum, vendor)
	hash := "sha256-" + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	if !strings.Contains(readPage(t, "../scripts/packages/flake.nix"), `vendorHash = "`+hash+`";`) {
		t.Errorf("scripts/packages/flake.nix needs vendorHash = %q", hash)
	}
}

// narNode writes a directory, or a file that can't be executed.
func narNode(t *testing.T, w io.Writer, name string) {
	t.Helper()
	entries, err := os.ReadDir(name) // sorted, as nix sorts them
	if err != nil {
		narText(t, w, "(", "type", "regular", "contents", readPage(t, name), ")")
		return
	}
	narText(t, w, "(", "type", "directory")
	for _, e := range entries {
		narText(t, w, "entry", "(", "name", e.Name(), "node")
		narNode(t, w, filepath.Join(name, e.Name()))
		narText(t, w, ")")
	}
	narText(t, w, ")")
}

// narText writes texts, each with its length before it, and zeros up to a multiple of eight bytes.
func narText(t *testing.T, w io.Writer, texts ...string) {
	t.Helper()
	for _, s := range texts {
		length := binary.LittleEndian.AppendUint64(nil, uint64(len(s)))
		if _, err := io.WriteString(w, string(length)+s+strings.Repeat("\x00", (8-len(s)%8)%8)); err != nil {
			t.Fatal(err)
		}
	}
}
