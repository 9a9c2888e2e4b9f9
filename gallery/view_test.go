package gallery

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
)

// split opens a gallery of a split with 3 images and texts of 2 channels.
func split(t *testing.T, texts []float32, meta map[string]string) *Gallery {
	t.Helper()
	dir := t.TempDir()
	f := check.Get(os.Create(filepath.Join(dir, FeaturesFile)))(t)
	tensors := []safetensors.Tensor{{Name: Image, Shape: []int{3, 2}, Data: []float32{1, 0, 0, 1, 1, 1}}, {Name: Text, Shape: []int{len(texts) / 2, 2}, Data: texts}}
	check.OK(t, errors.Join(safetensors.Write(f, tensors, meta), f.Close()))
	g := check.Get(Open(dir))(t)
	t.Cleanup(func() { g.Close() })
	return g
}

// TestSamples: recall is measured with texts from all over the file, and without them where one of these is not finite.
func TestSamples(t *testing.T) {
	texts := make([]float32, 2*1200)
	for i := range texts {
		texts[i] = float32(i + 1)
	}
	g := split(t, texts, nil)
	across := check.Get(g.View(Image, Text))(t)
	x := across.samples()
	if len(x) != 2*sampleQueries || !slices.Equal(x[:2], texts[:2]) ||
		!slices.Equal(x[2*250:2*251], texts[2*600:2*601]) || !slices.Equal(x[2*499:], texts[2*1197:2*1198]) {
		t.Errorf("%d numbers of texts, from %v to %v", len(x), x[:2], x[len(x)-2:])
	}
	texts[2*600] = float32(math.NaN())
	bad := check.Get(split(t, texts, nil).View(Image, Text))(t)
	if x := bad.samples(); x != nil {
		t.Errorf("%d numbers of texts of which one is not finite", len(x))
	}
}

// TestScored: rows are compared by the score of the model where it is a product or a distance, and the cosine stands
// for other sums.
func TestScored(t *testing.T) {
	for _, c := range []struct {
		score, product string
		metric         search.Metric
		scored         bool
	}{
		{"", "", search.Cosine, true},
		{"cosine", "true", search.Inner, true},
		{"l2", "", search.L2, true},
		{"cosine+l2", "", search.Cosine, false},
	} {
		g := split(t, []float32{1, 0}, map[string]string{"score": c.score, "product": c.product, "space": "sphere"})
		v := check.Get(g.View(Image, Text))(t)
		if v.Metric() != c.metric || v.Scored() != c.scored {
			t.Errorf("score %q: compared by %s, scored %v", c.score, v.Metric(), v.Scored())
		}
	}
}
