package tree

import (
	"reflect"
	"testing"
)

// TestFormats writes a tree in both formats, and reads what it wrote.
func TestFormats(t *testing.T) {
	const toml = `top = true

[a]
list = [
  "x\U0000000A\"",
  { path = "y" },
]
none = []

[a.b]
"k y" = 1
`
	const json = `{
  "top": true,
  "a": {
    "list": [
      "x\u000a\"",
      {
        "path": "y"
      }
    ],
    "none": [],
    "b": {
      "k y": 1
    }
  }
}
`
	for format, text := range map[*Format]string{TOML: toml, JSON: json} {
		for other, want := range map[*Format]string{TOML: toml, JSON: json} {
			n, mistakes := format.Read([]byte(text))
			got, err := other.Text(n)
			if err != nil || mistakes != nil || got != want {
				t.Errorf("%v, %v:\n%s", err, mistakes, got)
			}
		}
	}
}

// TestMistakes finds all of a file at once, each at its place.
func TestMistakes(t *testing.T) {
	_, all := TOML.Read([]byte("a = 1\na = 2\n[b]\n[b]\nc = "))
	want := []Mistake{{6, Duplicate, "a is given twice"}, {17, Duplicate, "b is given twice"}}
	if len(all) != 3 || !reflect.DeepEqual(all[:2], want) || all[2].Kind != Syntax {
		t.Errorf("%+v", all)
	}
	line, column := NewPlaces([]byte("ä\nöü")).At(5)
	if line != 2 || column != 2 {
		t.Errorf("%d:%d", line, column)
	}
}
