package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestHiddenCharacters: a file that does not look like what it says is refused, wherever such a
// character is.
func TestHiddenCharacters(t *testing.T) {
	for _, r := range []rune{
		0x00AD, 0x034F, 0x061C, 0x115F, 0x180E, 0x200B, 0x200D, 0x200F, 0x2028, 0x2029, 0x202A, 0x202E, 0x2060, 0x2066, 0x2069,
		0x0080, 0x0085, 0x009B, 0x009F, 0x2800, 0x3164, 0xFE00, 0xFEFF, 0xFFA0, 0xFFF9, 0xE0001, 0xE0041, 0xE0100,
	} {
		for _, toml := range []string{"# a%sb\n", "fs.deny = ['a%sb']\n", "[env.set]\n\"A%s\" = 'x'\n", "fs.deny = [\n# %s\n'a']\n"} {
			_, err := Decode("x", []byte(fmt.Sprintf(toml, string(r))))
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeSyntax || !strings.Contains(e.Msg, fmt.Sprintf("U+%04X", r)) || e.Origin.Line == 0 {
				t.Errorf("U+%04X in %q: %v", r, toml, err)
			}
		}
		if _, err := Decode("x.json", []byte(`{"fs": {"deny": ["a`+string(r)+`"]}}`)); err == nil {
			t.Errorf("U+%04X in JSON is taken", r)
		}
	}
	for _, text := range []string{"# Grüße, 例え, Ωμέγα, עברית, 👍, ⚠️\n", "fs.deny = ['名前/ü']\n"} {
		if _, err := Decode("x", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
