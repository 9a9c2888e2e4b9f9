package tasks

import (
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// TestRowsAtATime: images are encoded a batch at a time, texts some batches in the order of their length, the more the more
// there are, but never all at once where several processes could share them.
func TestRowsAtATime(t *testing.T) {
	texts, images := []batch.Column{{Name: batch.Tokens}, {Name: batch.Lengths}}, []batch.Column{{Name: batch.Images}}
	e := Encoding{BatchSize: 10}
	for _, x := range []struct{ n, texts, images int }{{1, 1, 1}, {9, 9, 9}, {40, 10, 10}, {41, 20, 10}, {400, 100, 10}, {5000, 160, 10}} {
		if a, b := e.rows(texts, x.n), e.rows(images, x.n); a != x.texts || b != x.images {
			t.Errorf("of %d rows %d texts and %d images at a time, want %d and %d", x.n, a, b, x.texts, x.images)
		}
	}
	for _, pictures := range [][]batch.Column{images, {{Name: batch.Regions}}} {
		if n := e.rows(append(pictures, texts...), 5000); n != 10 {
			t.Errorf("%d rows of %s with a text at a time, want eval.batch_size", n, pictures[0].Name)
		}
	}
}
