package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newInstallTo(a *app) *cobra.Command {
	return command("install-to", func(args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageHint("zsbx install-to ~/.local/bin", "name one directory")
		}
		own, err := os.Executable()
		if err != nil {
			return fmt.Errorf("zsbx's own file is not known: %w", err)
		}
		return installTo(own, filepath.Join(args[0], "zsbx"))
	})
}

// installTo copies the program whole beside the place that it gets, and renames it: zsbx may run from
// that place.
func installTo(program, place string) (err error) {
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()
	dir := filepath.Dir(place)
	to, err := os.CreateTemp(dir, ".zsbx-*")
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", dir, pe.Err) // nobody knows the temporary name
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Chmod(0o755), to.Sync(), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), place)
	}
	if err != nil {
		os.Remove(to.Name())
	}
	return err
}
