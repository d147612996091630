package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/zsbx/zsbx/policy"
)

// StateFile is where zsbx keeps what it knows of a path, by the kind of it. A home
// directory that does not exist, as that of an account of the system, is an error: it
// is not to be made.
func StateFile(h *policy.Host, kind, path string) (string, error) {
	state := h.StateHome()
	if state == "" {
		return "", errors.New("neither HOME nor the XDG base directory is set")
	}
	if !filepath.IsAbs(h.Getenv("XDG_STATE_HOME")) {
		if _, err := os.Stat(h.Home); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(state, "zsbx", kind, hex.EncodeToString(sum[:16])+".json"), nil
}

// WriteState writes all of such a file or nothing of it, readable by the user alone.
func WriteState(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	return Replace(root, filepath.Base(name), bytes.NewReader(data), 0o600, false)
}

// Replace writes all of a file below root or nothing of it: aside, and renamed into
// place, so that whoever reads it meanwhile gets the old one or the new one. It follows
// no link of that name. With fresh it is an error that the file is there already. Of
// mode the umask is taken off.
func Replace(root *os.Root, name string, from io.Reader, mode fs.FileMode, fresh bool) error {
	aside := name + "." + strconv.FormatUint(rand.Uint64(), 36)
	f, err := root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer root.Remove(aside) // gone when it was renamed
	if _, err = io.Copy(f, from); err == nil {
		err = f.Sync()
	}
	switch err = errors.Join(err, f.Close()); {
	case err != nil:
		return err
	case fresh:
		return root.Link(aside, name)
	}
	return root.Rename(aside, name)
}
