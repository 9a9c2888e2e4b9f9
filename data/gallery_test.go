package data

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// The galleries of a split hold what its methods tell of it.
func TestGalleries(t *testing.T) {
	ds := pictures(5)
	ds.Texts[1] = nil
	ds.Classes, ds.ClassOf = []string{"p", "q", "r"}, []int32{2, 0, 1, 0, 2}
	e := evalOf(t, ds, EvalConfig{ImageSize: 8})
	images := e.Images()
	b := batch.New(4, images.Columns()...)
	if err := LoadRows(t.Context(), images, 1, 3, b, 2); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*8*8)
	for i := range 3 {
		if err := e.LoadImage(1+i, want); err != nil || !slices.Equal(b.Row(i).Floats(batch.Images), want) || b.Ints(batch.Labels)[i] != e.Label(1+i) {
			t.Errorf("image %d differs (%v)", 1+i, err)
		}
	}
	if x := b.Row(3).Floats(batch.Images); slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		t.Error("a row that was not asked for is written")
	}
	texts, err := e.Texts(someText(3))
	if err != nil {
		t.Fatal(err)
	}
	b = batch.New(texts.Len(), texts.Columns()...)
	if err := LoadRows(t.Context(), texts, 0, texts.Len(), b, 3); err != nil {
		t.Fatal(err)
	}
	for j := range texts.Len() {
		ids := letters{}.Encode(e.Text(j), 3)
		if !slices.Equal(b.Row(j).Ints(batch.Tokens), ids) || b.Ints(batch.Lengths)[j] != int32(len(ids)) {
			t.Errorf("text %d is %v", j, b.Row(j).Ints(batch.Tokens))
		}
	}
	if images.Len() != 4 || texts.Len() != 8 {
		t.Errorf("%d images, %d texts", images.Len(), texts.Len())
	}
}

func TestLoadRowsRefuses(t *testing.T) {
	ds := pictures(4)
	e := evalOf(t, ds, EvalConfig{ImageSize: 8})
	for _, text := range []*Texts{nil, {Tokens: 3}, {Tokenizer: letters{}}} {
		if _, err := e.Texts(text); err == nil {
			t.Errorf("%v must not do for captions", text)
		}
	}
	b := batch.New(2, e.Images().Columns()...)
	var missing *batch.MissingError
	boxes := batch.New(2, Column{Name: "boxes", Shape: []int{4}})
	if err := LoadRows(t.Context(), e.Images(), 0, 2, boxes, 1); !errors.As(err, &missing) {
		t.Errorf("a column that is not there: %v", err)
	}
	for _, r := range [][2]int{{0, 0}, {0, 3}, {3, 2}, {-1, 2}} {
		if err := LoadRows(t.Context(), e.Images(), r[0], r[1], b, 1); err == nil || !strings.Contains(err.Error(), "do not fit") {
			t.Errorf("rows %v: %v", r, err)
		}
	}
	ds.Images[2] = nil
	if err := LoadRows(t.Context(), e.Images(), 1, 2, b, 2); err == nil || !strings.Contains(err.Error(), "row 2 (mend it") {
		t.Errorf("missing image: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := LoadRows(ctx, e.Images(), 0, 2, b, 2); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
