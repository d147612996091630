// Command gen writes the manual pages in man/ and the completion scripts in
// completions/ from zsbx's commands. With -check it writes nothing and fails
// when a file there is not what it would write.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zsbx/zsbx/cmd"
)

func main() {
	check := flag.Bool("check", false, "only say what is out of date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes or checks all files, below the working directory. One that belongs to no
// command is an error.
func run(check bool) error {
	files, err := generate()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		have, err := os.ReadFile(name)
		switch {
		case err == nil && bytes.Equal(have, files[name]):
		case check:
			errs = append(errs, fmt.Errorf("%s is out of date: make docs", name))
		default:
			errs = append(errs, os.WriteFile(name, files[name], 0o644))
		}
	}
	for _, glob := range []string{"man/*", "completions/*"} {
		have, err := filepath.Glob(glob)
		errs = append(errs, err)
		for _, name := range have {
			if files[name] == nil {
				errs = append(errs, fmt.Errorf("%s belongs to no command", name))
			}
		}
	}
	return errors.Join(errs...)
}

// generate makes the content of every file.
func generate() (map[string][]byte, error) {
	root := cmd.Root()
	files := map[string][]byte{}
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		p, err := manPage(c)
		if err != nil {
			return nil, err
		}
		files[filepath.Join("man", pageName(c)+".1")] = p
	}
	var bash, zsh, fish bytes.Buffer
	err := errors.Join(cmd.BashCompletion(root, &bash), root.GenZshCompletion(&zsh), root.GenFishCompletion(&fish, true))
	files["completions/zsbx.bash"] = bash.Bytes()
	files["completions/_zsbx"] = zsh.Bytes()
	files["completions/zsbx.fish"] = fish.Bytes()
	return files, err
}
