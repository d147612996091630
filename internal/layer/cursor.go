package layer

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/safepath"
)

// cursor opens directories below a directory, one name at a time. It keeps those of the last path open: in a
// sorted list the next one is near, and no path is too long.
type cursor struct {
	top   *os.File // nil if there is none
	names []string
	dirs  []*os.File // one for each name
}

// open opens a directory. It stays the cursor's. A link is not followed.
func (c *cursor) open(path string) (*os.File, error) {
	var names []string
	if path != "." {
		names = strings.Split(path, "/")
	}
	common := 0
	for common < len(c.names) && common < len(names) && c.names[common] == names[common] {
		common++
	}
	c.leave(common)
	for _, name := range names[common:] {
		dir, err := safepath.OpenBelow(c.last(), name, os.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return nil, err
		}
		c.names = append(c.names, name)
		c.dirs = append(c.dirs, dir)
	}
	return c.last(), nil
}

func (c *cursor) last() *os.File {
	if len(c.dirs) == 0 {
		return c.top
	}
	return c.dirs[len(c.dirs)-1]
}

// leave closes all directories but the first n.
func (c *cursor) leave(n int) {
	for _, d := range c.dirs[n:] {
		_ = d.Close()
	}
	c.names = c.names[:n]
	c.dirs = c.dirs[:n]
}

// close closes all directories.
func (c *cursor) close() {
	c.leave(0)
	_ = c.top.Close()
}
