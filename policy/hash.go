package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/syntax"
)

// Hash returns the SHA-256, in hexadecimal, of what the policy means. Two policies that
// differ only in origins, in the order of rules, in repetitions or in their file's layout
// have the same hash. Policies that may mean different things have different hashes.
func (p *Policy) Hash() string {
	sum := sha256.Sum256([]byte("zsbx policy 2\n" + strings.Join(p.statements(""), "\n")))
	return hex.EncodeToString(sum[:])
}

// statements returns the sorted statements of a policy. Every string in them is quoted, so
// that no value can look like another statement.
func (p *Policy) statements(prefix string) []string {
	var all []string
	for i := range keys {
		k := &keys[i]
		list := k.values(p)
		if list == nil {
			continue
		}
		all = append(all, prefix+k.name)
		for _, v := range list {
			all = append(all, fmt.Sprintf("%s%s %t %t %q %q", prefix, k.name, v.Optional, v.Create, v.Name, v.Value))
		}
	}
	if p.Guard.Off {
		all = append(all, prefix+"guard off")
	}
	for _, r := range p.FS.Rules {
		if r.Data { // no key has it
			all = append(all, fmt.Sprintf("%sfs.rw_noexec data %q", prefix, r.Path))
		}
	}
	for _, os := range syntax.Systems {
		if part := *p.part(os); part != nil {
			all = append(all, part.statements(prefix+os+" ")...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
