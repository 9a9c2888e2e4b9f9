package captioning

import (
	"context"
	"math"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
)

// TestCaptionedReadsCaptionsAsWritten: references keep what cleaning takes away, as the official evaluation has them:
// "a man 's black-and-white t-shirt" has five words, so that 7 of 13 written ones are right.
func TestCaptionedReadsCaptionsAsWritten(t *testing.T) {
	ds := &data.Memory{Texts: [][]string{{"A man's black-and-white T-shirt.", "!"}, {"Two dogs run on the grass."}}}
	for range ds.Texts {
		ds.Images = append(ds.Images, transform.NewImage(8, 8))
	}
	set := check.Get(data.NewEval(ds, data.EvalConfig{ImageSize: 8, Clean: data.CleanALBEF, MaxWords: 30}))(t)
	said := []string{"a mans black and white t shirt", "two dogs run on the grass"}
	s, err := Captioned{
		Write:   func(context.Context, *batch.Batch) ([]string, error) { return said, nil },
		Columns: []batch.Column{{Name: batch.Images, Shape: []int{3, 8, 8}}}, Set: set, Encoding: tasks.Encoding{BatchSize: 2},
	}.Run(t.Context())
	if err != nil || s.References != 2 {
		t.Fatalf("%+v (%v)", s, err)
	}
	for name, c := range map[string][2]float64{"BLEU-1": {s.Written.Bleu[0], 100 * 7. / 13},
		"BLEU-4": {s.Written.Bleu[3], 46.466}, "CIDEr-D": {s.Written.Cider, 519.99}} {
		if !(math.Abs(c[0]-c[1]) <= 0.01) {
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
}
