package fork

import "os"

// StandardFile is the caller's descriptor that a command with these files will
// have as number i.
func StandardFile(files []*os.File, i int) int {
	if i < len(files) && files[i] != nil {
		return int(files[i].Fd())
	}
	return i
}
