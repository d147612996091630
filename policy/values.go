package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zsbx/zsbx/policy/glob"
	"github.com/zsbx/zsbx/policy/internal/tree"
)

// hasControl reports whether s has a control character.
func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return strings.IndexFunc(s[i:], tree.IsControl) >= 0
		}
	}
	return false
}

// maxPath is PATH_MAX less the final NUL, in bytes.
const maxPath = 4095

// checkPath says what is wrong with a path as it is written in a rule.
func checkPath(s string) error {
	switch {
	case s == "":
		return errors.New("an empty path")
	case len(s) > maxPath:
		return fmt.Errorf("a path of %d bytes: the longest that can exist has %d", len(s), maxPath)
	case hasControl(s):
		return fmt.Errorf("path %q has a control character", s)
	case strings.Contains(s, "\uFFFD"):
		return fmt.Errorf("path %q has U+FFFD, which stands for text that could not be read", s)
	case s[0] == '~' && len(s) > 1 && s[1] != '/':
		return fmt.Errorf("path %q: another user's home directory must be written out (a file of that name is %q)", s, "./"+s)
	}
	return checkVariables(s)
}

// checkPresetName says what is wrong with the name of a preset. Whether there
// is such a preset is not known here.
func checkPresetName(s string) error {
	name, _ := strings.CutSuffix(s, toolsOnly)
	if name == "" || len(s) > 64 {
		return fmt.Errorf("bad preset name %q", s)
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != ':' {
			return fmt.Errorf("bad preset name %q", s)
		}
	}
	return nil
}

func checkEnvMode(s string) error {
	switch EnvMode(s) {
	case EnvScrubbed, EnvSanitized, EnvInherit, EnvVars:
		return nil
	}
	return fmt.Errorf("unknown environment mode %q: use scrubbed, sanitized, inherit or vars", s)
}

// checkEnvName says what is wrong with the name of a variable. POSIX has
// letters, digits and underscores; what npm, bash and others use beyond that
// is taken as well.
func checkEnvName(s string) error {
	if s == "" {
		return errors.New("an empty variable name")
	}
	if '0' <= s[0] && s[0] <= '9' {
		return fmt.Errorf("variable name %q starts with a digit", s)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '=' || c == '$' {
			return fmt.Errorf("variable name %q has %q", s, c)
		}
	}
	return nil
}

// checkEnvGlob says what is wrong with a name or a glob of names.
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
