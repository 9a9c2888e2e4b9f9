package align_test

import (
	"os"
	"testing"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
)

// clip is image embeddings of CLIP and unrelated text embeddings, 1,000 pairs.
const clip = "../../shared/data/clip_features/clip_b32_1000/"

// openClip returns 700 pairs to fit and 300 others.
func openClip(t *testing.T) (train, test align.Pairs) {
	if _, err := os.Stat(clip); err != nil {
		t.Skipf("no real features in %s", clip)
	}
	var sides [2]align.Table
	for s, name := range []string{"clip_image_embeddings.npy", "lsa_text_embeddings.npy"} {
		m := check.Get(features.OpenMatrix(clip+name, ""))(t)
		defer m.Close()
		sides[s] = align.Table{Data: make([]float32, m.Rows()*m.Width()), D: m.Width()}
		for i := range m.Rows() {
			check.OK(t, m.Row(i, sides[s].Data[i*m.Width():][:m.Width()]))
		}
	}
	cut := func(t align.Table, lo, hi int) align.Table { return align.Table{Data: t.Data[lo*t.D : hi*t.D], D: t.D} }
	return align.Pairs{Image: cut(sides[0], 0, 700), Text: cut(sides[1], 0, 700)},
		align.Pairs{Image: cut(sides[0], 700, 1000), Text: cut(sides[1], 700, 1000)}
}

// hits returns hit@1, 5 and 10 of both directions, image to text first.
func hits(t *testing.T, e *compute.Engine, m align.Map, p align.Pairs) [6]float64 {
	ranks := check.Get(align.Rank(e, m, p))(t)
	x := ranks.Metrics()
	return [6]float64{x.I2T.R1, x.I2T.R5, x.I2T.R10, x.T2I.R1, x.T2I.R5, x.T2I.R10}
}

// TestRealPairs reproduces the ridge map that was measured with numpy on these features
// (images centred, texts as they are, penalty 1: text to image 14.3, 40.0, 51.7) and says
// what the defaults of CCA gain.
func TestRealPairs(t *testing.T) {
	train, test := openClip(t)
	e := check.Get(compute.New(compute.Options{}))(t)
	defer e.Close()

	d := train.Image.Width()
	mean := make([]float64, d)
	for i, v := range train.Image.(align.Table).Data {
		mean[i%d] += float64(v) / 700
	}
	for _, p := range []align.Pairs{train, test} {
		for i, v := range p.Image.(align.Table).Data {
			p.Image.(align.Table).Data[i] = float32(float64(v) - mean[i%d])
		}
	}
	for _, c := range []struct {
		name   string
		method align.Method
		want   [6]float64
	}{
		{"ridge", align.Ridge{Prepare: align.Prepare{KeepMean: true, KeepLength: true}, Direction: align.TextToImage, Lambda: 1, Absolute: true}, [6]float64{18.7, 41.3, 56.7, 14.3, 40, 51.7}},
		{"cca", align.CCA{}, [6]float64{21, 50, 66, 21, 51.7, 63.7}},
	} {
		m := check.Get(c.method.Fit(e, train))(t)
		got := hits(t, e, m, test)
		t.Logf("%s: %.1f", c.name, got)
		for i, w := range c.want {
			if got[i] < w-1 || got[i] > w+1 { // a third of a percent is one query
				t.Errorf("%s: figure %d is %.1f, want %.1f", c.name, i, got[i], w)
			}
		}
	}
}

// TestRealUnpaired says what Wasserstein does where it works, on rotated copies of real
// features, and where it does not, between features of two encoders.
func TestRealUnpaired(t *testing.T) {
	train, _ := openClip(t)
	e := check.Get(compute.New(compute.Options{}))(t)
	defer e.Close()
	for name, p := range map[string]align.Pairs{"one space": {Image: train.Image, Text: train.Image},
		"two encoders": train} {
		o := align.Wasserstein{Rows: 150, Components: 32, Restarts: 1}
		m, found := check.Get2(o.FitUnpaired(e, p.Image, p.Text))(t)
		t.Logf("%s: hits of 700: %.1f, objective %.3f, agreement %.2f", name, hits(t, e, m, p), found.Objective,
			found.Agreement)
		if got := hits(t, e, m, p); name == "one space" && got[0] < 99 {
			t.Errorf("one space: hit@1 is %.1f", got[0])
		}
	}
}
