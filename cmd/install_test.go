package cmd

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall: another module installs zsbx by "go install" of a version, and builds the programs
// that embed package sandbox. zsbx comes from a module proxy that is made of files here, and other
// modules from this machine's module cache. "go install" refuses a module that replaces others.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds zsbx")
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skip("go is needed: ", err)
	}
	downloads := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	if _, err := os.Stat(downloads); err != nil {
		t.Skip("the module cache is needed: ", err)
	}
	list := exec.Command("go", "list", "-deps", "..")
	list.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod")
	if out, err := list.CombinedOutput(); err != nil { // somebody else built this test
		t.Skipf("this user's module cache lacks modules: %s", out)
	}
	const module, version = "github.com/zsbx/zsbx", "v0.1.0"
	proxy, bin, own := t.TempDir(), t.TempDir(), t.TempDir()
	makeProxy(t, filepath.Join(proxy, module, "@v"), module, version)
	env := append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+downloads+",off", "GOSUMDB=off", "GOFLAGS=-mod=mod -trimpath -modcacherw",
		"GOMODCACHE="+t.TempDir(), "GOBIN="+bin, "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0")
	golang := func(args ...string) {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir, c.Env = own, env
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}

	examples := []string{"embed", "report", "terminal", "queue"}
	for _, name := range examples {
		program, err := os.ReadFile(filepath.Join("../enforce/sandbox/testdata", name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(own, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, name, "main.go"), program, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mod := "module example.com/embeds\n\ngo 1.26.0\n\nrequire " + module + " " + version + "\n"
	if err := os.WriteFile(filepath.Join(own, "go.mod"), []byte(mod), 0o644); err != nil {
		t.Fatal(err)
	}
	golang("build", "-o", bin, "./...")
	golang("install", module+"@"+version)

	for _, argv := range [][]string{
		{"zsbx", "run", "--", "echo", "inside"},
		{"embed", "echo", "inside"},
		{"report", "echo", "inside"},
		{"terminal", "echo", "inside"},
		{"queue", "echo inside"},
	} {
		c := exec.Command(filepath.Join(bin, argv[0]), argv[1:]...)
		c.Dir = t.TempDir()
		c.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()) // queue ends sessions by their names
		out, err := c.Output()
		if err != nil || !strings.HasPrefix(string(out), "inside") {
			t.Errorf("%q: %q, %v", argv, out, err)
		}
	}
	said, err := exec.Command(filepath.Join(bin, "zsbx"), "version").Output()
	if err != nil || !strings.HasPrefix(string(said), "zsbx "+version+" ") {
		t.Errorf("version: %q, %v", said, err)
	}
}

// makeProxy makes the files by which a module proxy serves one version of this module
// (https://go.dev/ref/mod#goproxy-protocol).
func makeProxy(t *testing.T, dir, module, version string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir, 0o755))
	mod, err := os.ReadFile("../go.mod")
	must(err)
	must(os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644))
	must(os.WriteFile(filepath.Join(dir, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644))
	must(os.WriteFile(filepath.Join(dir, version+".mod"), mod, 0o644))
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	must(err)
	defer file.Close()
	all := zip.NewWriter(file)
	must(filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel("..", path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return filepath.SkipDir
		case !d.Type().IsRegular() || name == "zsbx":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := all.Create(module + "@" + version + "/" + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}))
	must(all.Close())
}
