package data

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// tcl is the pipeline of TCL with 24 pixels a side.
var tcl = transform.Train{Size: 24, ScaleMin: 0.3, Flip: true, Ops: 2, Level: 7, Jitter: 0.8, Gray: 0.2, Blur: 0.5}

// counted is a data set that counts how often images are asked for.
type counted struct {
	*Memory
	n *int
}

func (c counted) Image(i int) (*transform.Image, error) {
	*c.n++
	return c.Memory.Image(i)
}

func pictures(n int) *Memory {
	m := memory(n, "a", "b")
	r := rand.New(rand.NewPCG(1, 2))
	for i := range m.Images {
		m.Images[i] = transform.NewImage(40, 30)
		for k := range m.Images[i].Pix {
			m.Images[i].Pix[k] = uint8(r.Uint32())
		}
	}
	return m
}

func sceneStream(t testing.TB, tr transform.Train) *SceneStream {
	t.Helper()
	w, err := scenes.New(scenes.Config{ValSamples: 10, TestSamples: 10}, 7)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSceneStream(w, 50, TrainConfig{Seed: 7, Transform: tr})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The first of two views must be the only one of one, bit by bit; the second another
// augmentation of the same decoded image.
func TestTwoViews(t *testing.T) {
	decoded := 0
	files, err := NewTrain(counted{pictures(9), &decoded}, TrainConfig{Seed: 4, Transform: tcl})
	if err != nil {
		t.Fatal(err)
	}
	over, err := Overfit(files, 5)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Stream{"files": files, "scenes": sceneStream(t, tcl), "overfit": over} {
		const n = 3 * 24 * 24
		one, two := make([]float32, n), make([]float32, 2*n)
		equal := 0
		for c := range uint64(30) {
			caption, id, err := s.Sample(c, one)
			if err != nil {
				t.Fatal(err)
			}
			before := decoded
			caption2, id2, err := s.Sample(c, two)
			if err != nil {
				t.Fatal(err)
			}
			if caption != caption2 || id != id2 || !slices.Equal(one, two[:n]) {
				t.Fatalf("%s: sample %d is another one with two views", name, c)
			}
			if name != "scenes" && decoded != before+1 {
				t.Fatalf("%s: sample %d was decoded %d times", name, c, decoded-before)
			}
			if slices.Equal(two[:n], two[n:]) {
				equal++
			}
			again := make([]float32, 2*n)
			if _, _, err := s.Sample(c, again); err != nil || !slices.Equal(two, again) {
				t.Fatalf("%s: sample %d is not repeated (%v)", name, c, err)
			}
		}
		if equal > 0 {
			t.Errorf("%s: %d of 30 second views equal the first", name, equal)
		}
		for _, bad := range []int{0, n - 1, n + 1, 3 * n} {
			if _, _, err := s.Sample(0, make([]float32, bad)); err == nil {
				t.Errorf("%s: room for %d values must fail", name, bad)
			}
		}
	}
}

// Without any augmentation both views of a scene are the scene.
func TestTwoViewsOfPlainScene(t *testing.T) {
	s := sceneStream(t, transform.Train{Size: 24, ScaleMin: 1})
	two := make([]float32, 2*3*24*24)
	if _, _, err := s.Sample(3, two); err != nil || !slices.Equal(two[:len(two)/2], two[len(two)/2:]) || two[0] == 0 {
		t.Errorf("the views differ (%v)", err)
	}
	blurred := sceneStream(t, transform.Train{Size: 24, ScaleMin: 1, Blur: 1})
	other := make([]float32, 2*3*24*24)
	if _, _, err := blurred.Sample(3, other); err != nil || slices.Equal(two, other) {
		t.Errorf("blur alone changes nothing (%v)", err)
	}
}

// Batches with two views must not depend on the workers, must begin anywhere exactly,
// and must hold the images of batches with one view.
func TestLoaderTwoViews(t *testing.T) {
	ds := pictures(23)
	ds.Images[4] = nil
	ds.Classes, ds.ClassOf = []string{"even", "odd"}, make([]int32, 23)
	for i := range ds.ClassOf {
		ds.ClassOf[i] = int32(i % 2)
	}
	files, err := NewTrain(ds, TrainConfig{Seed: 4, Transform: tcl})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Stream{"files": files, "scenes": sceneStream(t, tcl)} {
		cfg := LoaderConfig{BatchSize: 4, Tokens: 6, ImageSize: 24, Workers: 3, MaxBadShare: 0.5, Views: 2}
		l := newLoader(t, s, cfg)
		cfg.Views = 1
		plain := newLoader(t, s, cfg)
		cfg.Views, cfg.Workers = 2, 1
		for step := range 9 {
			pos := l.Position()
			b, err := l.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			p, err := plain.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if p.Views != nil || !slices.Equal(p.Images, b.Images) || !slices.Equal(p.Labels, b.Labels) || !slices.Equal(p.Tokens, b.Tokens) || p.End != b.End {
				t.Errorf("%s: batch %d differs from the one with one view", name, step)
			}
			if len(b.Views) != len(b.Images) || slices.Equal(b.Views, b.Images) {
				t.Errorf("%s: batch %d has no second views", name, step)
			}
			r := newLoader(t, s, cfg)
			r.Start(pos)
			again, err := r.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(again.Images, b.Images) || !slices.Equal(again.Views, b.Views) || !slices.Equal(again.Labels, b.Labels) {
				t.Errorf("%s: batch %d differs when started at %d", name, step, pos)
			}
			if name == "files" {
				for row, id := range b.ImageIDs {
					if b.Labels[row] != int32(id%2) {
						t.Errorf("batch %d: image %d has label %d", step, id, b.Labels[row])
					}
				}
			}
			r.Close()
			plain.Recycle(b) // not its own: must be refused
			l.Recycle(b)
			plain.Recycle(p)
		}
	}
	for _, views := range []int{-1, 3} {
		if _, err := NewLoader(files, letters{}, LoaderConfig{BatchSize: 2, Tokens: 4, ImageSize: 24, Views: views}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("got %d", views)) {
			t.Errorf("%d views: %v", views, err)
		}
	}
}

func FuzzNumViews(f *testing.F) {
	f.Add(24, 12)
	f.Add(12, 12)
	f.Add(36, 12)
	f.Fuzz(func(t *testing.T, n, row int) {
		v, err := numViews(n, row)
		if err == nil && (v < 1 || v > MaxViews || v*row != n) {
			t.Errorf("%d values of %d: %d views", n, row, v)
		}
		if err != nil && row > 0 && (n == row || n == 2*row && n > 0) {
			t.Errorf("%d values of %d: %v", n, row, err)
		}
	})
}
