package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

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
	f, err := os.CreateTemp(filepath.Dir(name), ".new-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when it was renamed
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
