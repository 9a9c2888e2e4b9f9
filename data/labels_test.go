package data

import (
	"context"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/transform"
)

func TestLabelsOfScenes(t *testing.T) {
	s := sceneStream(t, transform.Train{Size: 24, ScaleMin: 1})
	names, ok := s.Labels()
	if !ok || len(names) != 64 || names[0] != "red circle" || names[63] != "cyan diamond" {
		t.Fatalf("%d classes: %q", len(names), names)
	}
	l := newLoader(t, s, LoaderConfig{BatchSize: 8})
	if got, ok := l.Labels(); !ok || !slices.Equal(got, names) {
		t.Error("the loader does not know the classes")
	}
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for row, c := range b.Counters {
		scene := s.world.Train(b.Counter + uint64(row))
		_, id, err := s.Describe(c)
		if err != nil || int64(scene.Key()) != id || b.Ints(batch.IDs)[row] != HashID(id) || int(b.Ints(batch.Labels)[row]) != s.world.Class(scene) {
			t.Errorf("row %d has label %d", row, b.Ints(batch.Labels)[row])
		}
	}
	set, err := NewSceneSet(s.world, "val", 24)
	if err != nil {
		t.Fatal(err)
	}
	e := evalOf(t, set, EvalConfig{ImageSize: 24})
	if got, ok := e.Labels(); !ok || !slices.Equal(got, names) {
		t.Error("the evaluation set does not know the classes")
	}
	for i := range e.NumImages() {
		if want := s.world.Class(s.world.Val(i)); int(e.Label(i)) != want {
			t.Errorf("scene %d has label %d, want %d", i, e.Label(i), want)
		}
	}
}

// Data without classes must say so everywhere.
func TestLabelsUnknown(t *testing.T) {
	ds := NewFiles([]File{{Path: "a", Captions: []string{"x"}, Label: 3}}, Options{})
	tr := trainOf(t, ds, TrainConfig{Transform: transform.Train{Size: 2}})
	e := evalOf(t, memory(2, "a"), EvalConfig{ImageSize: 2})
	over, err := Overfit(numbered{epoch: 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]any{"files": ds, "train": tr, "eval": e, "overfit": over, "numbered": numbered{epoch: 3}} {
		if names, ok := labelsOf(x); ok || names != nil {
			t.Errorf("%s: classes %q", name, names)
		}
	}
	if ds.Label(0) != UnknownLabel || e.Label(0) != UnknownLabel || tr.SampleLabel(0) != UnknownLabel || sampleLabel(over, 0) != UnknownLabel {
		t.Error("a label without classes")
	}
	plain := trainOf(t, memory(2, "a"), TrainConfig{Transform: transform.Train{Size: 4}})
	l := newLoader(t, plain, LoaderConfig{BatchSize: 2})
	b, err := l.Next(context.Background())
	if err != nil || !slices.Equal(b.Ints(batch.Labels), []int32{UnknownLabel, UnknownLabel}) {
		t.Errorf("labels %v (%v)", b.Ints(batch.Labels), err)
	}
}

// Images that evaluation leaves out must not shift the labels of the others, and
// Overfit repeats those of its samples.
func TestLabelsFollowImages(t *testing.T) {
	ds := pictures(5)
	ds.Texts[1] = nil
	ds.Classes, ds.ClassOf = []string{"p", "q", "r"}, []int32{2, 0, 1, 0, 2}
	e, err := NewEval(ds, EvalConfig{ImageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for i := range e.NumImages() {
		got = append(got, e.Label(i))
	}
	if !slices.Equal(got, []int32{2, 1, 0, 2}) {
		t.Errorf("labels %v", got)
	}
	for _, pairs := range []bool{false, true} {
		tr := trainOf(t, ds, TrainConfig{Seed: 2, Transform: transform.Train{Size: 2}, Pairs: pairs})
		over, err := Overfit(tr, 3)
		if err != nil {
			t.Fatal(err)
		}
		b := batch.New(1, tr.Columns()...)
		for c := range uint64(20) {
			if err := tr.Sample(c, b.Row(0)); err == nil {
				id, label := b.Ints(batch.IDs)[0], b.Ints(batch.Labels)[0]
				if tr.SampleLabel(c) != ds.ClassOf[id] || label != ds.ClassOf[id] {
					t.Errorf("sample %d of image %d has label %d and %d", c, id, tr.SampleLabel(c), label)
				}
			}
			if sampleLabel(over, c) != tr.SampleLabel(c%3) {
				t.Errorf("sample %d of 3 has another label", c)
			}
		}
	}
}
