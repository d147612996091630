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
	for _, text := range []string{toml, json} {
		n, mistakes := Read(text == json, []byte(text))
		if mistakes != nil || n.TOML() != toml || n.JSON() != json {
			t.Errorf("%v:\n%s%s", mistakes, n.TOML(), n.JSON())
		}
	}
}

// TestMistakes finds all of a file at once, each at its place.
func TestMistakes(t *testing.T) {
	_, all := Read(false, []byte("a = 1\na = 2\n[b]\n[b]\nc = "))
	want := []Mistake{{6, Duplicate, "a is given twice"}, {17, Duplicate, "b is given twice"}}
	if len(all) != 3 || !reflect.DeepEqual(all[:2], want) || all[2].Kind != Syntax {
		t.Errorf("%+v", all)
	}
	line, column := NewPlaces([]byte("ä\nöü")).At(5)
	if line != 2 || column != 2 {
		t.Errorf("%d:%d", line, column)
	}
}
