package data_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
)

// Regions is a data kind as another module would write one: an image is up to R boxes
// with D features each, as detectors give, and a text is a row of E features. Nothing of
// package data had to change for it, and no package but this one knows its column names.
type Regions struct {
	Boxes, Width, Text int           // R, D, E
	Images             [][][]float32 // D features of each box of each image
	Texts              [][]float32   // E features of the text of each image
	order              *data.Order
}

// Names of its own columns. A tower that reads regions agrees on them.
const (
	regionColumn = "regions"      // (R, D) float32, rows of zeros after the last box
	countColumn  = "region count" // () int32, boxes that are not padding
)

func (r *Regions) Columns() []data.Column {
	return []data.Column{
		{Name: regionColumn, Shape: []int{r.Boxes, r.Width}},
		{Name: countColumn, Type: batch.Int32},
		{Name: batch.TextFeatures, Shape: []int{r.Text}},
		{Name: batch.IDs, Type: batch.Int32},
	}
}

func (r *Regions) EpochSamples() int { return len(r.Images) }

func (r *Regions) Sample(c uint64, row batch.Row) error {
	i := r.order.At(c)
	boxes := r.Images[i]
	if len(boxes) == 0 {
		return fmt.Errorf("regions: image %d has no box", i) // a bad sample: skipped and counted
	}
	if dst := row.Floats(regionColumn); dst != nil { // nil: no tower reads it
		clear(dst)
		for b, x := range boxes[:min(len(boxes), r.Boxes)] {
			copy(dst[b*r.Width:], x)
		}
	}
	row.Set(countColumn, int32(min(len(boxes), r.Boxes)))
	copy(row.Floats(batch.TextFeatures), r.Texts[i])
	row.Set(batch.IDs, int32(i))
	return nil
}

// regions is n images of 1 to 4 boxes of which 3 are kept, image 5 without any.
func regions(n int) *Regions {
	r := &Regions{Boxes: 3, Width: 2, Text: 4, order: data.NewOrder(1, n)}
	for i := range n {
		var boxes [][]float32
		for b := range 1 + i%4 {
			boxes = append(boxes, []float32{float32(i), float32(b)})
		}
		if i == 5 {
			boxes = nil
		}
		r.Images, r.Texts = append(r.Images, boxes), append(r.Texts, []float32{float32(i), 1, 2, 3})
	}
	return r
}

func ExampleStream() {
	stream := regions(8)
	// What a region tower and a text head ask for.
	reads := []data.Column{
		{Name: regionColumn, Shape: []int{3, 2}},
		{Name: countColumn, Type: batch.Int32},
		{Name: batch.TextFeatures, Shape: []int{4}},
	}
	loader, err := data.NewLoader(stream, data.LoaderConfig{BatchSize: 2, Columns: reads, MaxBadShare: 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer loader.Close()
	b, err := loader.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range b.Size {
		row := b.Row(i)
		fmt.Println(row.Ints(countColumn)[0], row.Floats(regionColumn), row.Floats(batch.TextFeatures))
	}

	// A tower of pixels finds nothing to read here.
	_, err = data.NewLoader(stream, data.LoaderConfig{BatchSize: 2, Columns: []data.Column{{Name: batch.Images, Shape: []int{3, 224, 224}}}})
	fmt.Println(err)
	// Output:
	// 1 [0 0 0 0 0 0] [0 1 2 3]
	// 3 [6 0 6 1 6 2] [6 1 2 3]
	// batch: the model reads the column images (3, 224, 224) float32, which the data does not give (it gives regions (3, 2) float32, region count () int32, text features (4) float32, ids () int32): choose data that has it, or a model that does not read it
}

// A data kind that package data does not know has all that the loader gives: an order
// that the number of workers does not change, bad samples, an exact position.
func TestDataKindOfAnotherModule(t *testing.T) {
	r := regions(23)
	load := func(workers int, from uint64) *data.Loader {
		l, err := data.NewLoader(r, data.LoaderConfig{BatchSize: 4, Columns: r.Columns(), Workers: workers, MaxBadShare: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		l.Start(from)
		return l
	}
	l := load(3, 0)
	seen := map[int32]bool{}
	for range 11 {
		from := l.Position()
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := load(1, from).Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.Floats(regionColumn), again.Floats(regionColumn)) || !slices.Equal(b.Counters, again.Counters) {
			t.Errorf("the batch from %d is another one with one worker", from)
		}
		for i, id := range b.Ints(batch.IDs) {
			row := b.Row(i)
			want := make([]float32, 6)
			for k, x := range r.Images[id][:row.Ints(countColumn)[0]] {
				copy(want[2*k:], x)
			}
			if seen[id] = true; !slices.Equal(row.Floats(regionColumn), want) || row.Floats(batch.TextFeatures)[0] != float32(id) {
				t.Errorf("image %d: regions %v, want %v", id, row.Floats(regionColumn), want)
			}
		}
		l.Recycle(b)
	}
	if bad, _, examples := l.Bad(); len(seen) != 22 || bad == 0 || !strings.Contains(examples[0].Err.Error(), "image 5 has no box") {
		t.Errorf("%d images seen, %d bad: %v", len(seen), bad, examples)
	}
	for want, column := range map[string]data.Column{
		"images (3, 8, 8) float32": {Name: batch.Images, Shape: []int{3, 8, 8}},
		"regions (36, 2) float32":  {Name: regionColumn, Shape: []int{36, 2}},
	} {
		_, err := data.NewLoader(r, data.LoaderConfig{BatchSize: 4, Columns: []data.Column{column}})
		if _, missing := errors.AsType[*batch.MissingError](err); !missing || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
