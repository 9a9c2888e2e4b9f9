package multimodal

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/internal/check"
)

// TestStatements: accuracy and consistency are those that metrics.py of NLVR2 prints for the file of results, 0.667 and 0.5; a
// statement without a label counts for neither.
func TestStatements(t *testing.T) {
	f := &data.FileExamples{Classes: examples.NLVRClasses}
	said := []int32{1, 0, 1, 1, 1, 1, 0}
	for _, e := range []data.Example{
		{ID: "dev-850-0-0", Label: 1}, {ID: "dev-850-1-0", Label: 0}, {ID: "dev-850-2-1", Label: 1}, {ID: "dev-850-3-1", Label: 0},
		{ID: "dev-851-0-0", Label: 0}, {ID: "dev-852-0-1", Label: 1}, {ID: "dev-853-0-1", Label: data.UnknownLabel},
	} {
		e.Text = "it is said"
		f.Add(e, "left.png", "right.png")
	}
	s := Scores{Of: Variant{Name: NLVRName, Group: examples.NLVRGroup, Lines: true}, Samples: f, Predicted: said, Accuracy: 200. / 3}
	s.Consistency, s.Sentences = consistency(f, said, examples.NLVRGroup)
	if s.Consistency != 50 || s.Sentences != 4 || s.Values()["consistency"] != 50 {
		t.Errorf("consistency %v of %d sentences, want 50 of 4", s.Consistency, s.Sentences)
	}
	if got := s.Line(); !strings.Contains(got, "nlvr accuracy 66.67") || !strings.HasSuffix(got, "consistency 50.00 of 4 sentences") {
		t.Errorf("line %q", got)
	}
	var b strings.Builder
	check.OK(t, s.WriteResults(&b))
	const want = "dev-850-0-0,true\ndev-850-1-0,false\ndev-850-2-1,true\ndev-850-3-1,true\ndev-851-0-0,true\ndev-852-0-1,true\ndev-853-0-1,false\n"
	if b.String() != want {
		t.Errorf("results %q, want %q", b.String(), want)
	}
}
