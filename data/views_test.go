package data

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
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
	s, err := NewSceneStream(w, 50, TrainConfig{Seed: 7, Transform: tr, Text: someText(6)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The first of two views must be the only one of one, bit by bit; the second another
// augmentation of the same decoded image.
func TestTwoViews(t *testing.T) {
	decoded := 0
	files := trainOf(t, counted{pictures(9), &decoded}, TrainConfig{Seed: 4, Transform: tcl, Text: someText(6)})
	over, err := Overfit(files, 5)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Stream{"files": files, "scenes": sceneStream(t, tcl), "overfit": over} {
		columns := s.Columns()
		one, two := batch.New(1, oneView(s)...), batch.New(1, columns...)
		equal := 0
		for c := range uint64(30) {
			if err := s.Sample(c, one.Row(0)); err != nil {
				t.Fatal(err)
			}
			before := decoded
			if err := s.Sample(c, two.Row(0)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(one.Floats(batch.Images), two.Floats(batch.Images)) || !slices.Equal(one.Ints(batch.IDs), two.Ints(batch.IDs)) ||
				!slices.Equal(one.Ints(batch.Tokens), two.Ints(batch.Tokens)) {
				t.Fatalf("%s: sample %d is another one with two views", name, c)
			}
			if name != "scenes" && decoded != before+1 {
				t.Fatalf("%s: sample %d was decoded %d times", name, c, decoded-before)
			}
			if slices.Equal(two.Floats(batch.Images), two.Floats(batch.Views)) {
				equal++
			}
			again := batch.New(1, columns...)
			if err := s.Sample(c, again.Row(0)); err != nil || !slices.Equal(two.Floats(batch.Views), again.Floats(batch.Views)) ||
				!slices.Equal(two.Floats(batch.Images), again.Floats(batch.Images)) {
				t.Fatalf("%s: sample %d is not repeated (%v)", name, c, err)
			}
		}
		if equal > 0 {
			t.Errorf("%s: %d of 30 second views equal the first", name, equal)
		}
		for _, side := range []int{0, 23, 25} {
			for _, column := range []string{batch.Images, batch.Views} {
				b := batch.New(1, Column{Name: column, Shape: []int{3, side, side}})
				if err := s.Sample(0, b.Row(0)); err == nil {
					t.Errorf("%s: room for %s of %d pixels a side must fail", name, column, side)
				}
			}
		}
	}
}

// Without any augmentation both views of a scene are the scene.
func TestTwoViewsOfPlainScene(t *testing.T) {
	s := sceneStream(t, transform.Train{Size: 24, ScaleMin: 1})
	two := batch.New(1, s.Columns()...)
	if err := s.Sample(3, two.Row(0)); err != nil || !slices.Equal(two.Floats(batch.Images), two.Floats(batch.Views)) || two.Floats(batch.Images)[0] == 0 {
		t.Errorf("the views differ (%v)", err)
	}
	blurred := sceneStream(t, transform.Train{Size: 24, ScaleMin: 1, Blur: 1})
	other := batch.New(1, s.Columns()...)
	if err := blurred.Sample(3, other.Row(0)); err != nil || slices.Equal(two.Floats(batch.Images), other.Floats(batch.Images)) {
		t.Errorf("blur alone changes nothing (%v)", err)
	}
	small := batch.New(1, Column{Name: batch.Images, Shape: []int{3, 8, 8}})
	if err := s.Sample(3, small.Row(0)); err == nil {
		t.Error("room for a smaller picture must fail")
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
	files, err := NewTrain(ds, TrainConfig{Seed: 4, Transform: tcl, Text: someText(6)})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Stream{"files": files, "scenes": sceneStream(t, tcl)} {
		cfg := LoaderConfig{BatchSize: 4, Columns: s.Columns(), Workers: 3, MaxBadShare: 0.5}
		l := newLoader(t, s, cfg)
		cfg.Columns = oneView(s)
		plain := newLoader(t, s, cfg)
		cfg.Columns, cfg.Workers = s.Columns(), 1
		for step := range 9 {
			pos := l.Position()
			b := nextOf(t, l)
			p, err := plain.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if p.Floats(batch.Views) != nil || !slices.Equal(p.Floats(batch.Images), b.Floats(batch.Images)) || !slices.Equal(p.Ints(batch.Labels), b.Ints(batch.Labels)) ||
				!slices.Equal(p.Ints(batch.Tokens), b.Ints(batch.Tokens)) || p.End != b.End {
				t.Errorf("%s: batch %d differs from the one with one view", name, step)
			}
			if len(b.Floats(batch.Views)) != len(b.Floats(batch.Images)) || slices.Equal(b.Floats(batch.Views), b.Floats(batch.Images)) {
				t.Errorf("%s: batch %d has no second views", name, step)
			}
			r := newLoader(t, s, cfg)
			r.Start(pos)
			again, err := r.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(again.Floats(batch.Images), b.Floats(batch.Images)) || !slices.Equal(again.Floats(batch.Views), b.Floats(batch.Views)) ||
				!slices.Equal(again.Ints(batch.Labels), b.Ints(batch.Labels)) {
				t.Errorf("%s: batch %d differs when started at %d", name, step, pos)
			}
			if name == "files" {
				for row, id := range b.Ints(batch.IDs) {
					if b.Ints(batch.Labels)[row] != int32(id%2) {
						t.Errorf("batch %d: image %d has label %d", step, id, b.Ints(batch.Labels)[row])
					}
				}
			}
			r.Close()
			plain.Recycle(b) // not its own: must be refused
			l.Recycle(b)
			plain.Recycle(p)
		}
	}
}
