package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxPath is PATH_MAX less the final NUL, in bytes.
const maxPath = 4095

// parseTimeout reads a duration with its unit: "90s", "10m", "1h30m". "0" is
// no limit.
func parseTimeout(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, err := strconv.ParseUint(s, 10, 63); err == nil {
			return 0, fmt.Errorf("duration %q has no unit: write %ss for seconds", s, s)
		}
		return 0, fmt.Errorf("bad duration %q: write a number and a unit (ms, s, m, h)", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("negative duration %q", s)
	}
	if d == 0 && strings.ContainsAny(s, "123456789") {
		return 0, fmt.Errorf("duration %q is less than a nanosecond", s)
	}
	return d, nil
}

// parseSize reads a number of bytes, with a unit or without: "4096", "64KiB",
// "10MiB", "1GB". "0" is no limit.
func parseSize(s string) (int64, error) {
	bad := fmt.Errorf("bad size %q: write a number of bytes, or a number and a unit (KiB, MiB, GiB, KB, MB, GB)", s)
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	number, err := strconv.ParseUint(s[:i], 10, 63)
	if err != nil {
		return 0, bad
	}
	var unit uint64
	switch s[i:] {
	case "", "B":
		unit = 1
	case "KiB":
		unit = 1 << 10
	case "MiB":
		unit = 1 << 20
	case "GiB":
		unit = 1 << 30
	case "KB", "kB":
		unit = 1e3
	case "MB":
		unit = 1e6
	case "GB":
		unit = 1e9
	default:
		return 0, bad
	}
	if number > math.MaxInt64/unit {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return int64(number * unit), nil
}

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
	if !isGlob(s) {
		return nil
	}
	_, err := parseSegment(s)
	return err
}

func checkEnvValue(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("a variable's value has a NUL")
	}
	return nil
}
