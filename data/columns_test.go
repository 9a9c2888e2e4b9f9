package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// oneView is every column of a stream but the second views.
func oneView(s Stream) []Column {
	return slices.DeleteFunc(slices.Clone(s.Columns()), func(c Column) bool { return c.Name == batch.Views })
}

// picture asks a stream for the image of a sample alone.
func picture(s Stream, c uint64) ([]float32, error) {
	b := batch.New(1, s.Columns()[slices.IndexFunc(s.Columns(), func(c Column) bool { return c.Name == batch.Images })])
	return b.Floats(batch.Images), s.Sample(c, b.Row(0))
}

// someText is the columns of text of the tests: l tokens, one per byte.
func someText(l int) *Texts { return &Texts{Tokenizer: letters{}, Tokens: l} }

// numbered is a stream whose sample c shows the number c; bad counters fail.
type numbered struct {
	epoch int
	bad   func(c uint64) bool
	size  int    // side of an image; 0: 1
	text  *Texts // nil: 4 tokens
}

func (n numbered) EpochSamples() int { return n.epoch }

func (n numbered) Columns() []Column {
	size := max(n.size, 1)
	return append([]Column{{Name: batch.Images, Shape: []int{3, size, size}}, {Name: batch.IDs, Type: batch.Int32}}, n.texts().Columns()...)
}

func (n numbered) texts() *Texts {
	if n.text == nil {
		return someText(4)
	}
	return n.text
}

func (n numbered) Sample(c uint64, row batch.Row) error {
	if n.bad != nil && n.bad(c) {
		return fmt.Errorf("sample %d is broken", c)
	}
	dst := row.Floats(batch.Images)
	for i := range dst {
		dst[i] = float32(c)
	}
	row.Set(batch.IDs, int32(c))
	n.texts().Fill(fmt.Sprint("n", c), row)
	return nil
}

// A loader refuses columns that the stream does not give, and says what it gives.
func TestLoaderMissingColumn(t *testing.T) {
	have := numbered{epoch: 5}
	for want, columns := range map[string][]Column{
		"the column boxes (7, 4) float32":   {{Name: "boxes", Shape: []int{7, 4}}},
		"the column images (3, 2, 2)":       {{Name: batch.IDs, Type: batch.Int32}, {Name: batch.Images, Shape: []int{3, 2, 2}}},
		"bring shape and type":              {{Name: batch.IDs, Type: batch.Float32}},
		"it gives images (3, 1, 1) float32": {{Name: batch.Views, Shape: []int{3, 1, 1}}},
	} {
		_, err := NewLoader(have, LoaderConfig{BatchSize: 1, Columns: columns})
		var missing *batch.MissingError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", columns, err, want)
		}
	}
	if _, err := NewLoader(have, LoaderConfig{BatchSize: 1}); err == nil || !strings.Contains(err.Error(), "needs the columns") {
		t.Errorf("no column: %v", err)
	}
}

// What a column holds does not depend on which others are asked for, and nobody pays for
// a column that is not: an image that cannot be read is not a bad sample of texts.
func TestColumnsAlone(t *testing.T) {
	decoded := 0
	files, err := NewTrain(counted{pictures(9), &decoded}, TrainConfig{Seed: 4, Transform: tcl, Text: someText(7)})
	if err != nil {
		t.Fatal(err)
	}
	world := sceneStream(t, tcl)
	for name, s := range map[string]Stream{"files": files, "scenes": world} {
		whole := batch.New(1, s.Columns()...)
		for c := range uint64(12) {
			if err := s.Sample(c, whole.Row(0)); err != nil {
				t.Fatal(err)
			}
			for _, column := range s.Columns() {
				before := decoded
				one := batch.New(1, column)
				if err := s.Sample(c, one.Row(0)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(one.Floats(column.Name), whole.Floats(column.Name)) || !slices.Equal(one.Ints(column.Name), whole.Ints(column.Name)) {
					t.Errorf("%s: sample %d has another column %v when it is alone", name, c, column)
				}
				if column.Type == batch.Int32 && decoded != before {
					t.Errorf("%s: an image is decoded for the column %v", name, column)
				}
			}
		}
	}
	ds := pictures(3)
	ds.Images[1] = nil
	if files, err = NewTrain(ds, TrainConfig{Transform: tcl, Text: someText(7)}); err != nil {
		t.Fatal(err)
	}
	l := newLoader(t, files, LoaderConfig{BatchSize: 3, Columns: files.cfg.Text.Columns()})
	if _, err := l.Next(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestTextsRefuse(t *testing.T) {
	for want, text := range map[string]*Texts{
		"tokens must be > 0 (got -1)": {Tokenizer: letters{}, Tokens: -1},
		"need a tokenizer":            {Tokens: 4},
	} {
		if _, err := NewTrain(memory(2, "a"), TrainConfig{Transform: tcl, Text: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("images: got %v, want %q", err, want)
		}
		if _, err := NewSceneStream(sceneStream(t, tcl).world, 5, TrainConfig{Transform: tcl, Text: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("scenes: got %v, want %q", err, want)
		}
	}
	if _, err := NewTrain(memory(2, "a"), TrainConfig{}); err == nil || !strings.Contains(err.Error(), "image size must be > 0 (got 0)") {
		t.Errorf("no size: %v", err)
	}
}

// With recycled batches a step of the loader allocates next to nothing.
func TestLoaderAllocatesNothing(t *testing.T) {
	s := silent{numbered{epoch: 1000, size: 8}}
	l := newLoader(t, s, LoaderConfig{BatchSize: 16, Columns: s.Columns(), Workers: 1})
	next := func() {
		b := nextOf(t, l)
		l.Recycle(b)
	}
	for range 20 {
		next()
	}
	if n := testing.AllocsPerRun(50, next); n > 1 {
		t.Errorf("%v allocations in a step", n)
	}
}

// silent is a stream whose samples allocate nothing.
type silent struct{ numbered }

func (s silent) Columns() []Column {
	return []Column{{Name: batch.Images, Shape: []int{3, 8, 8}}, {Name: batch.IDs, Type: batch.Int32}}
}

func (s silent) Sample(c uint64, row batch.Row) error {
	row.Floats(batch.Images)[0] = float32(c)
	row.Set(batch.IDs, int32(c))
	return nil
}
