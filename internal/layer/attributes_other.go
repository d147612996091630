//go:build !linux

package layer

import "os"

const capabilityAttribute = "security.capability"

// attributes are the extended attributes of an entry. Layers are made on Linux only.
type attributes struct {
	own     map[string][]byte
	origin  bool
	opaque  bool
	strange string
}

// Attributes returns the extended attributes of an entry in an open directory that belong to the user.
func Attributes(*os.File, string) (map[string][]byte, error) { return nil, nil }

func attributesOf(*os.File, string) (a attributes, err error) { return a, nil }

func copyAttributes(_, _ *os.File) error { return nil }

func born(*os.File) int64 { return 0 }
