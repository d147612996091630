package tree

import (
	"reflect"
	"testing"
)

// TestFormats reads the same from both formats.
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
	const json = `{"top": true, "a": {"list": ["x\u000a\"", {"path": "y"}], "none": [], "b": {"k y": 1}}}`
	const want = `{top:true a:{list:[x
" {path:y }]none:[]b:{k y:1 }}}`
	for _, text := range []string{toml, json} {
		n, mistakes := Read(text == json, []byte(text))
		if mistakes != nil || n.said() != want {
			t.Errorf("%v:\n%s", mistakes, n.said())
		}
	}
}

// said returns the value of a node as text.
func (n *Node) said() string {
	out := n.Text
	switch n.Kind {
	case Array:
		for _, item := range n.Items {
			out += item.said()
		}
		return "[" + out + "]"
	case Table:
		for _, f := range n.Fields {
			out += f.Key + ":" + f.Val.said()
		}
		return "{" + out + "}"
	}
	return out + " "
}

// TestMistakes finds each mistake at its place, in TOML only the first one.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]Mistake{
		"a = 1\n[b]\n[b]\nc = ":  {11, Duplicate, "table b already exists"},
		"a = 1\n[b]\nc = [":      {14, Syntax, "array is incomplete"},
		"a = { b = 1 }\na.c = 2": {14, Duplicate, "key a is already defined"},
	} {
		if _, all := Read(false, []byte(text)); !reflect.DeepEqual(all, []Mistake{want}) {
			t.Errorf("%q: %+v", text, all)
		}
	}
	line, column := NewPositions([]byte("ä\nöü")).At(5)
	if line != 2 || column != 2 {
		t.Errorf("%d:%d", line, column)
	}
}
