package stricttoml

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

func TestCheck(t *testing.T) {
	deep := strings.Repeat("a.", Deepest+1) + "a"
	for _, c := range []struct {
		text string
		line int // 0: it is taken
	}{
		{"", 0},
		{"a = 1\n" + deep + " = 1", 2},
		{strings.Repeat("a.", Deepest) + "a = 1", 0},
		{"[" + deep + "]", 1},
		{"[" + strings.Repeat("a.", Deepest-1) + "a]", 0},
		{"x = " + strings.Repeat("[", Deepest) + strings.Repeat("]", Deepest), 0},
		{"x = \n" + strings.Repeat("[\n", Deepest+1) + strings.Repeat("]", Deepest+1), Deepest + 2},
		{"x = " + strings.Repeat("{a=", Deepest+1) + "1" + strings.Repeat("}", Deepest+1), 1},
		{"x = " + strings.Repeat("{a.a.a=", Deepest/2) + "{a." + deep + "=1}" + strings.Repeat("}", Deepest/2), 1},
		{"x = [" + strings.Repeat("1.5, ", 100) + "]", 0},
		{strings.Repeat("x = [[1]]\n", 100), 0},
		{`x = "` + deep + `"`, 0},
		{`x = '` + deep + `'`, 0},
		{`x = "\"` + deep + `"`, 0},
		{`x = '\' # ` + deep, 0},
		{"x = '\\'\n" + deep, 2},
		{"x = \"\"\"\n\"" + deep + "\n\\\"\"\"" + deep + "\"\"\"\n" + deep, 4},
		{"x = '''\n'" + deep + "\n''" + deep + "'''\n" + deep, 4},
		{"# " + deep + "\n" + deep, 2},
		{"# " + deep, 0},
		{"#\n" + deep, 2},
		{"x = \"\n" + deep, 2}, // no TOML
		{`x = "\`, 0},
	} {
		line := 0
		if err := Check(c.text); err != nil {
			line = err.Line
		}
		if line != c.line {
			t.Errorf("line %d of %q, want %d", line, c.text, c.line)
		}
	}
}

// What is taken has no table deeper than that, whatever the text: each level is a bracket or a dot, and what lies in a
// list begins with dots of its own.
func FuzzCheck(f *testing.F) {
	f.Add("a.b = 1\n[[c.d]]\ne = [{f.g = '''.'''}, {h = \"\\\".\"}] # [\n")
	f.Add(strings.Repeat("a.", Deepest+1) + "a = 1")
	f.Add("x = " + strings.Repeat("{a=", Deepest+1) + "1" + strings.Repeat("}", Deepest+1))
	f.Fuzz(func(t *testing.T, text string) {
		defer budgettest.Within(t, len(text))()
		if len(text) > 1<<12 || Check(text) != nil {
			return
		}
		var root map[string]any
		md, err := toml.Decode(text, &root)
		if err != nil {
			return
		}
		for _, k := range md.Keys() {
			if len(k) > Deepest*Deepest {
				t.Errorf("%d levels in %q", len(k), text)
			}
		}
	})
}
