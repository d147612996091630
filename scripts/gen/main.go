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
	"slices"

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

// run writes or checks all files, below the working directory.
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
	return errors.Join(errs...)
}

func generate() (map[string][]byte, error) {
	root := cmd.Root()
	files := map[string][]byte{}
	for _, c := range append(root.Commands(), root) {
		page, err := manPage(c)
		if err != nil {
			return nil, err
		}
		files["man/"+pageName(c)+".1"] = page
	}
	for shell, name := range map[string]string{"bash": "zsbx.bash", "zsh": "_zsbx", "fish": "zsbx.fish"} {
		var b bytes.Buffer
		if err := cmd.Completion(root, shell, &b); err != nil {
			return nil, err
		}
		files["completions/"+name] = b.Bytes()
	}
	return files, nil
}
