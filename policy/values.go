package policy

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

func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return strings.ContainsFunc(s[i:], unicode.IsControl)
		}
	}
	return false
}

// checkPath returns what is wrong with a path as it is written in a rule.
func checkPath(s string) error {
	if s == "" {
		return errors.New("an empty path")
	}
	if hasControl(s) {
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

const wordLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// checkPresetName returns what is wrong with the name of a preset.
func checkPresetName(s string) error {
	base, _ := strings.CutSuffix(s, toolsOnly)
	if slices.ContainsFunc(Presets(), func(p PresetInfo) bool { return p.Name == base }) {
		return nil
	}
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return fmt.Errorf("unknown preset %q (known: %s)%s", s, strings.Join(names, " "), DidYouMean(s, names))
}

// envModes are in order, from the mode that lets the fewest variables through.
var envModes = []string{EnvVars, EnvScrubbed, EnvSanitized, EnvInherit}

func checkEnvMode(s string) error {
	if !slices.Contains(envModes, s) {
		return fmt.Errorf("unknown environment mode %q: use scrubbed, sanitized, inherit or vars", s)
	}
	return nil
}

func checkShared(s string) error {
	if s != wordPrivate && s != wordShared {
		return fmt.Errorf("%q must be %q or %q", s, wordPrivate, wordShared)
	}
	return nil
}

// checkEnvName returns what is wrong with the name of a variable. POSIX allows letters,
// digits and underscores; what npm, bash and others use beyond that is accepted, too.
func checkEnvName(s string) error {
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

// checkEnvGlob returns what is wrong with a name or a glob of names.
func checkEnvGlob(s string) error {
	if err := checkEnvName(s); err != nil {
		return err
	}
	if !glob.HasMeta(s) {
		return nil
	}
	_, err := glob.ParseName(s)
	return err
}

func checkEnvValue(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("a variable's value has a NUL")
	}
	return nil
}

// checkPort returns what is wrong with a TCP port. Base 0 accepts what TOML has: 0x, 0o, 0b
// and underscores. A leading zero, which would mean octal, is not valid in TOML or JSON.
func checkPort(s string) error { return checkNumber("port", s, 1, 65535) }

// checkDays is for audit.keep, where 0 means forever.
func checkDays(s string) error { return checkNumber("audit.keep", s, 0, 36500) }

func checkNumber(what, s string, low, high int64) error {
	if number, err := strconv.ParseInt(s, 0, 64); err != nil || number < low || number > high {
		return fmt.Errorf("%s %s is not between %d and %d", what, s, low, high)
	}
	return nil
}

// checkListName returns what is wrong with the name of a list.
func checkListName(s string) error {
	if s == "" || s == "off" || len(s) > 64 || strings.Trim(s, wordLetters) != "" {
		return fmt.Errorf("bad name of a guard list %q: use a to z, digits, - and _, and not off", s)
	}
	return nil
}

// checkGuardWords returns what is wrong with an entry of a list.
func checkGuardWords(s string) error {
	words := strings.Fields(s)
	_, err := path.Match(s, "")
	if err != nil || hasControl(s) || len(words) == 0 || strings.Trim(words[0], "*?") == "" ||
		strings.Contains(words[0], "/") {
		return fmt.Errorf("bad entry %q of a guard list: must be a command's name without a directory, "+
			"then arguments, all as patterns", s)
	}
	return nil
}
