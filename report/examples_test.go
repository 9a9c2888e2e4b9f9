package report

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
)

// dot is a picture of one colour.
func dot(t *testing.T, c color.RGBA) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for i := range 256 {
		m.SetRGBA(i%16, i/16, c)
	}
	var b bytes.Buffer
	check.OK(t, png.Encode(&b, m))
	return b.Bytes()
}

// TestExamples: a page of examples has all that it was given, escaped, and leaves out what it was not given.
func TestExamples(t *testing.T) {
	red, blue := color.RGBA{200, 30, 30, 255}, color.RGBA{30, 30, 200, 255}
	table := eval.TableOf([]string{"contradiction", "neutral", "entailment"}, []int32{0, 1, 2, 2}, []int32{0, 1, 1, 2})
	x := ExamplesPage{
		Title: "entailment", Facts: []Fact{{Name: "split", Value: "test"}}, Notes: []string{"Two of four are shown."},
		Kinds:   []KindAccuracy{{Kind: "yes/no", Number: 12, Accuracy: 75, Baseline: 50}, {Kind: "<other>", Number: 3, Accuracy: 100. / 3, Baseline: -1}},
		Classes: &Classes{Title: "Entailment", Step: 7, Split: "test", Table: table},
		Tables:  []Table{{Title: "By length", Head: []string{"words", "accuracy"}, Rows: []Line{Texts("5", "20.0")}}},
		Wrong: []Example{{
			Name: "<17>", Kind: "colour", Text: "is the <b> dot red & round?", Answer: "no", Truth: "yes",
			Pictures: []Picture{{PNG: dot(t, red), Alt: "a \"dot\"", Caption: "left"}, {PNG: dot(t, blue), Alt: "map", Caption: "what it looks at"}},
			Scores:   []AnswerScore{{Answer: "no", Score: .625}, {Answer: "<yes>", Score: .25, True: true}, {Answer: "maybe", Score: -3.5}},
		}},
		Right: []Example{{Answer: "two", Right: true, Pictures: []Picture{{PNG: dot(t, blue), Alt: "dots"}}}},
	}
	var b bytes.Buffer
	check.OK(t, WriteExamples(&b, x))
	text := b.String()
	checkPage(t, strings.ReplaceAll(text, `src="data:image/png;base64,`, ""))
	for _, want := range []string{
		"accuracy by kind, %", "&lt;other&gt;", "<td>33.3</td><td></td>", "<td>75.0</td><td>50.0</td>", "Entailment on test, step 7", "3 of 4 right", "By length",
		"is the &lt;b&gt; dot red &amp; round?", `<dd class="no">no</dd>`, `<dd class="yes">two</dd>`, "&lt;17&gt;", "a &quot;dot&quot;", "what it looks at",
		`<li style="background-size:62.5% 100%"><span>no</span><small>0.625</small>`, `<li class="yes" style="background-size:25.0% 100%"><span>&lt;yes&gt;`,
		`style="background-size:0.0% 100%"><span>maybe</span><small>-3.5</small>`, `class="grid cards"`, "a right one is green",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(text, "<img "); n != 3 {
		t.Errorf("%d pictures", n)
	}
	b.Reset()
	check.OK(t, WriteExamples(&b, ExamplesPage{Title: "none"}))
	if strings.Contains(b.String(), "<section") {
		t.Error("a page of nothing has sections")
	}
	table.Right = nil
	if err := WriteExamples(&b, x); err == nil {
		t.Error("a table that does not fit is drawn")
	}
}
