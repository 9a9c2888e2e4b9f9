package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/check"
)

// TestHeatTables: a table has its names, figures and frames, and one of many columns neither figures nor
// rows of them.
func TestHeatTables(t *testing.T) {
	h := explain.Heatmap{Rows: []string{"<a>", "circle"}, Columns: []string{"0", "1"}, Values: []float64{.25, .75, 0, 1}, Marked: []int{1},
		Beside: []explain.Figures{{Name: "r", Values: []float64{.1, -.00001}}}, Below: []explain.Figures{{Name: "adds", Values: []float64{.5, .625}}}}
	wide := explain.Heatmap{Rows: []string{"a"}, Columns: make([]string, 64), Values: make([]float64, 64), Below: []explain.Figures{{Name: "lowest row", Values: make([]float64, 64)}}}
	var b bytes.Buffer
	err := WriteExplanation(&b, Explanation{Title: "a pair", Parts: []ExplainedScore{{ID: "terms", Title: "Terms", Tables: []HeatTable{{Heatmap: h, Title: "words", Caption: "the sum"}, {Heatmap: wide, Title: "patches"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;a&gt;</th>", ">0.75</td>", ">0.1000</td>", ">0.0000</td>", ">0.6250</td>", "the sum", `class="grid single"`, `class="narrow"`, `title="circle, 1: 1.0000"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(b.String(), `class="cell marked"`); n != 1 {
		t.Errorf("%d cells have a frame", n)
	}
	if strings.Contains(b.String(), "lowest row") || strings.Contains(b.String(), "<a>") {
		t.Error("figures below narrow columns, or a word as a tag")
	}
}

// TestContributionsOfRegions have bars by number instead of a map.
func TestContributionsOfRegions(t *testing.T) {
	var b bytes.Buffer
	if err := WriteContributions(&b, Contributions{Title: "pairs", Regions: []Bar{{Name: "0", Mean: .75}, {Name: "1", Mean: .25}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "by number of the region") || strings.Contains(b.String(), "by patch") {
		t.Error("no bars of regions, or a map of patches")
	}
}

// TestBeside: a page tells the pictures beside it, and no other page makes one remove a file elsewhere.
func TestBeside(t *testing.T) {
	var b bytes.Buffer
	if err := WriteExplanation(&b, Explanation{Title: `content="x.png"`, Beside: []string{"image.png", "match-word-03-red.png"}}); err != nil {
		t.Fatal(err)
	}
	if got := Beside(b.Bytes()); !slices.Equal(got, []string{"image.png", "match-word-03-red.png"}) {
		t.Errorf("pictures %q", got)
	}
	b.Reset()
	check.OK(t, WriteExplanation(&b, Explanation{Title: "a pair"}))
	for _, page := range []string{"", b.String(), `<meta name="pictures" content="../a.png /b.png c.html sub/d.png ..`} {
		if got := Beside([]byte(page)); got != nil {
			t.Errorf("pictures %q of %.60q", got, page)
		}
	}
}
