package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tree"
)

const (
	// MaxFileSize is the most that a policy file may hold, in bytes: room
	// for MaxRules rules of a hundred characters each.
	MaxFileSize = 1 << 20
	// MaxRules is how many rules one policy file, and all that was asked
	// for by hand together, may have.
	MaxRules = 10_000
)

// DecodeTOML reads a policy written in TOML. Name stands in the origins. All
// errors are found in one go: the error is an Errors then, each of them with
// line and column. The policy is nil exactly when the error is not.
//
// Decoding looks at nothing but the text: whether the paths exist and what
// they lead to is for Resolve to find out.
func DecodeTOML(name string, r io.Reader) (*Policy, error) { return decodeFrom(name, r, tree.TOML) }

// DecodeJSON reads a policy written in JSON: the same keys, the same meaning
// and the same errors as with DecodeTOML.
func DecodeJSON(name string, r io.Reader) (*Policy, error) { return decodeFrom(name, r, tree.JSON) }

// DecodeFile reads a policy file: JSON if its name ends in ".json", else
// TOML. Only a regular file of at most MaxFileSize is read, so that a FIFO or
// a device can neither block nor feed us.
func DecodeFile(path string) (*Policy, error) {
	data, err := ReadFile(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the origin has the path already
		}
		return nil, Errors{{Origin: Origin{Source: path}, Code: CodeFile, Msg: "reading the policy", Err: err}}
	}
	if strings.HasSuffix(path, ".json") {
		return decode(path, data, tree.JSON)
	}
	return decode(path, data, tree.TOML)
}

func decodeFrom(name string, r io.Reader, format *tree.Format) (*Policy, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileSize+1))
	switch {
	case err != nil:
		return nil, Errors{{Origin: Origin{Source: name}, Code: CodeFile, Msg: "reading the policy", Err: err}}
	case len(data) > MaxFileSize:
		return nil, Errors{{Origin: Origin{Source: name}, Code: CodeLimit, Msg: fmt.Sprintf("larger than %d bytes", MaxFileSize)}}
	}
	return decode(name, data, format)
}

func decode(name string, data []byte, format *tree.Format) (*Policy, error) {
	c := &checker{source: name, places: tree.NewPlaces(data)}
	root, mistakes := format.Read(data)
	codes := map[tree.MistakeKind]Code{tree.Syntax: CodeSyntax, tree.Duplicate: CodeDuplicate, tree.TooDeep: CodeValue}
	for _, m := range mistakes {
		c.fail(c.origin(&tree.Node{}, m.Off), codes[m.Kind], "%s", m.Msg)
	}
	var p *Policy
	if root != nil {
		p = c.policy(root)
	}
	if err := c.errs.err(); err != nil {
		return nil, err
	}
	return p, nil
}
