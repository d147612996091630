package compose

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
)

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
