package syntax

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/zsbx/zsbx/internal/glob"
)

// HasControl reports whether a text has a control character.
func HasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return strings.ContainsFunc(s[i:], unicode.IsControl)
		}
	}
	return false
}

// CheckPath returns what is wrong with a path as it is written in a rule.
func CheckPath(s string) error {
	if s == "" {
		return errors.New("an empty path")
	}
	if HasControl(s) {
		return fmt.Errorf("path %q has a control character", s)
	}
	if strings.Contains(s, "\uFFFD") {
		return fmt.Errorf("path %q has U+FFFD, which stands for text that could not be read", s)
	}
	if s[0] == '~' && len(s) > 1 && s[1] != '/' {
		return fmt.Errorf("path %q: another user's home directory must be written out (a file of that name is %q)",
			s, "./"+s)
	}
	return checkVariables(s)
}

// WordLetters are the letters of names that need no quotes.
const WordLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// EnvModes are in order, from the mode that lets the fewest variables through.
var EnvModes = []string{"vars", "scrubbed", "sanitized", "inherit"}

// CheckEnvMode returns what is wrong with env.mode.
func CheckEnvMode(s string) error {
	if !slices.Contains(EnvModes, s) {
		return fmt.Errorf("unknown environment mode %q: use scrubbed, sanitized, inherit or vars", s)
	}
	return nil
}

// CheckShared returns what is wrong with a value that is private or shared.
func CheckShared(s string) error {
	if s != "private" && s != "shared" {
		return fmt.Errorf("%q must be %q or %q", s, "private", "shared")
	}
	return nil
}

// CheckWrites returns what is wrong with fs.writes.
func CheckWrites(s string) error {
	if s != "try" && s != "direct" {
		return fmt.Errorf("%q must be %q or %q", s, "try", "direct")
	}
	return nil
}

// CheckDenyBy returns what is wrong with net.deny.
func CheckDenyBy(s string) error {
	if s != "error" && s != "nxdomain" {
		return fmt.Errorf("%q must be %q or %q", s, "error", "nxdomain")
	}
	return nil
}

// CheckEnvName returns what is wrong with the name of a variable. POSIX allows letters,
// digits and underscores; what npm, bash and others use beyond that is accepted, too.
func CheckEnvName(s string) error {
	if s == "" {
		return errors.New("an empty variable name")
	}
	if '0' <= s[0] && s[0] <= '9' {
		return fmt.Errorf("variable name %q starts with a digit", s)
	}
	for _, c := range s {
		if c <= ' ' || c >= 0x7f || c == '=' || c == '$' {
			return fmt.Errorf("variable name %q has %q", s, c)
		}
	}
	return nil
}

// CheckEnvGlob returns what is wrong with a name or a glob of names.
func CheckEnvGlob(s string) error {
	if err := CheckEnvName(s); err != nil {
		return err
	}
	if !glob.HasMeta(s) {
		return nil
	}
	_, err := glob.ParseName(s)
	return err
}

// CheckEnvValue returns what is wrong with the value of a variable.
func CheckEnvValue(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("a variable's value has a NUL")
	}
	return nil
}

// CheckPort returns what is wrong with a TCP port. Base 0 accepts what TOML has: 0x, 0o, 0b
// and underscores. A leading zero, which would mean octal, is not valid in TOML or JSON.
func CheckPort(s string) error { return checkNumber("port", s, 1, 65535) }

// CheckDays returns what is wrong with a value of audit.keep, where 0 means forever.
func CheckDays(s string) error { return checkNumber("audit.keep", s, 0, 36500) }

func checkNumber(what, s string, low, high int64) error {
	if number, err := strconv.ParseInt(s, 0, 64); err != nil || number < low || number > high {
		return fmt.Errorf("%s %s is not between %d and %d", what, s, low, high)
	}
	return nil
}

// CheckListName returns what is wrong with the name of a list.
func CheckListName(s string) error {
	if s == "" || s == "off" || len(s) > 64 || strings.Trim(s, WordLetters) != "" {
		return fmt.Errorf("bad name of a guard list %q: use a to z, digits, - and _, and not off", s)
	}
	return nil
}

// CheckGuardWords returns what is wrong with an entry of a list.
func CheckGuardWords(s string) error {
	words := strings.Fields(s)
	_, err := path.Match(s, "")
	if err != nil || HasControl(s) || len(words) == 0 || strings.Trim(words[0], "*?") == "" ||
		strings.Contains(words[0], "/") {
		return fmt.Errorf("bad entry %q of a guard list: must be a command's name without a directory, "+
			"then arguments, all as patterns", s)
	}
	return nil
}
