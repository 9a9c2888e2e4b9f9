package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
)

// TestClasses: few classes are named at the matrix, many are thinned, and a table that does not fit is refused.
func TestClasses(t *testing.T) {
	table := eval.TableOf([]string{"<cat>", "dog & co", "none"}, []int32{0, 1, 1, 0}, []int32{0, 0, 1, 1})
	d := Data{Title: "run", Classes: []Classes{{Title: "Zero-shot", Step: 3, Split: "val", Table: table}}}
	text := render(t, d)
	checkPage(t, text)
	for _, want := range []string{"Zero-shot on val, step 3", "&lt;cat&gt;", "dog &amp; co (1)", "1 of 3 classes have no image.", "2 of 4 right, mean of classes 50.0 %."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(text, "rows and columns") {
		t.Error("three classes are said to be thinned")
	}
	var names []string
	var labels []int32
	for i := range 300 {
		names, labels = append(names, fmt.Sprintf("class %d", i)), append(labels, int32(i))
	}
	var b bytes.Buffer
	if err := WriteClasses(&b, ClassesPage{Title: "probe", Classes: Classes{Title: "Probe", Table: eval.TableOf(names, labels, labels)}}); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String())
	if text := b.String(); !strings.Contains(text, "The 50 classes of 300 with the lowest accuracy.") || !strings.Contains(text, "taken for") || !strings.Contains(text, "300 classes in 96 rows and columns") || len(text) > 200_000 {
		t.Errorf("a page of %d bytes", len(text))
	}
	table.Right = nil
	check.Error(t, Write(&b, d), "a table of 3 classes")
}
