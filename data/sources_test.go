package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/filetest"
)

// writeImage writes a PNG of one shade and returns its path.
func writeImage(t testing.TB, dir, name string, shade uint8) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 6, 4))
	for i := range img.Pix {
		img.Pix[i] = shade
	}
	img.SetGray(1, 1, color.Gray{Y: 255 - shade})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	filetest.Write(t, path, b.Bytes())
	return path
}

// memory is a data set of n small images with the given captions each.
func memory(n int, captions ...string) *Memory {
	m := &Memory{}
	for i := range n {
		img := transform.NewImage(4, 4)
		img.Pix[0] = uint8(i)
		m.Images = append(m.Images, img)
		var own []string
		for _, c := range captions {
			own = append(own, fmt.Sprint(c, " ", i))
		}
		m.Texts = append(m.Texts, own)
	}
	return m
}

func TestTrainVisitsEverythingOncePerEpoch(t *testing.T) {
	cfg := TrainConfig{Seed: 3, Transform: transform.Train{Size: 4}}
	tr, err := NewTrain(memory(10, "a", "b", "c"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var orders [3][]int64
	phrasings := map[string]bool{}
	for c := range uint64(30) {
		caption, id, err := tr.Describe(c)
		if err != nil {
			t.Fatal(err)
		}
		orders[c/10] = append(orders[c/10], id)
		phrasings[strings.Fields(caption)[0]] = true
		if strings.Fields(caption)[1] != fmt.Sprint(id) {
			t.Errorf("caption %q with image %d", caption, id)
		}
	}
	if slices.Equal(orders[0], orders[1]) || slices.Equal(orders[1], orders[2]) || len(phrasings) != 3 {
		t.Errorf("orders %v, phrasings %v", orders, phrasings)
	}
	for _, o := range orders {
		slices.Sort(o)
		if !slices.Equal(o, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("an epoch visits %v", o)
		}
	}
	// Pairs: every caption of every image once.
	cfg.Pairs = true
	if tr, err = NewTrain(memory(4, "a", "b", "c"), cfg); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for c := range uint64(12) {
		caption, _, err := tr.Describe(c)
		if err != nil {
			t.Fatal(err)
		}
		seen[caption] = true
	}
	if tr.EpochSamples() != 12 || len(seen) != 12 {
		t.Errorf("%d pairs, %d seen", tr.EpochSamples(), len(seen))
	}
}

func TestTrainBadSamples(t *testing.T) {
	ds := memory(3, "a")
	ds.Texts[1] = nil
	ds.Images[2] = nil
	ds.IDs = []int64{1 << 40, -7, 1 << 40}
	tr := trainOf(t, ds, TrainConfig{Transform: transform.Train{Size: 4}})
	if tr.dense[1<<40] != 0 || tr.dense[-7] != 1 {
		t.Errorf("dense ids %d and %d, want 0 and 1", tr.dense[1<<40], tr.dense[-7])
	}
	var errs []string
	for c := range uint64(3) {
		if _, err := picture(tr, c); err != nil {
			errs = append(errs, err.Error())
		}
	}
	slices.Sort(errs)
	if len(errs) != 2 || !strings.Contains(errs[0], "image 1: no caption") || !strings.Contains(errs[1], "image 2 is missing") {
		t.Errorf("got %q", errs)
	}
	if _, err := NewTrain(&Memory{}, TrainConfig{Transform: transform.Train{Size: 4}}); err == nil {
		t.Error("an empty data set must fail")
	}
	if _, err := NewTrain(ds, TrainConfig{}); err == nil {
		t.Error("size 0 must fail")
	}
}

// trainOf is a training stream that must open, evalOf a split, and nextOf a batch that must come.
func trainOf(t testing.TB, ds Dataset, cfg TrainConfig) *Train {
	t.Helper()
	tr, err := NewTrain(ds, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func evalOf(t testing.TB, ds Dataset, cfg EvalConfig) *Eval {
	t.Helper()
	e, err := NewEval(ds, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func nextOf(t testing.TB, l *Loader) *Batch {
	t.Helper()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}
