package syntax

import (
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
)

// Denials. A pattern without wildcards is a path, which need not exist yet: a
// relative one is taken from the working directory. A pattern with wildcards
// is anchored in the same way: "**/.env" is any .env below the working
// directory, "~/**/id_*" any below the home directory. A backslash makes the
// next character an ordinary one.

// CheckDenial returns what is wrong with a denial as it is written. A denial that can never
// match is an error: its author believes that something is denied.
func CheckDenial(s string) error {
	if err := CheckPath(s); err != nil {
		return err
	}
	if s[0] == '!' {
		return fmt.Errorf("denial %q: denials cannot be taken back (a file of that name is %q)", s, `\`+s)
	}
	// ${NAME} has braces
	plain, err := ReplaceVariables(s, func(v Variable) (string, error) { return "$" + v.Name, nil })
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(plain, "/") {
		if _, err := glob.ParseName(name); err != nil {
			return fmt.Errorf("denial %w", err)
		}
	}
	return nil
}
