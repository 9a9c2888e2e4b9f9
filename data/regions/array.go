package regions

import (
	"errors"
	"fmt"
	"sync"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// array is regions as one array (N, R, D), which is mapped into memory.
type array struct {
	features *features.Matrix
	boxes    *features.Matrix // (N, R, 4); nil: none
	lengths  []int64          // of the images; nil: zeros at the end are padding
	most     int
	width    int
	rows     sync.Pool // of a whole image
}

// openArray opens a file of one array, and another of boxes.
func openArray(path, tensor, boxes string) (Features, error) {
	return newArray(path, tensor, boxes, "", nil)
}

func newArray(path, tensor, boxes, boxTensor string, lengths []int64) (_ Features, err error) {
	a := &array{lengths: lengths}
	if a.features, err = features.OpenArray(path, tensor, 3); err != nil {
		return nil, err
	}
	if boxes != "" {
		if a.boxes, err = features.OpenArray(boxes, boxTensor, 3); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	shape := a.features.RowShape()
	a.most, a.width = shape[0], shape[1]
	a.rows.New = func() any { x := make([]float32, a.most*max(a.width, 4)); return &x }
	if err := a.check(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// check compares what belongs together.
func (a *array) check() error {
	path, n := a.features.Path(), a.features.Rows()
	if b := a.boxes; b != nil {
		if s := b.RowShape(); b.Rows() != n || s[0] != a.most || s[1] != 4 {
			return fmt.Errorf("regions: %s has boxes of the shape [%d %d %d], and %s regions of [%d %d %d]: give a "+
				"box of 4 numbers for each region", b.Path(), b.Rows(), s[0], s[1], path, n, a.most, a.width)
		}
	}
	if a.lengths == nil {
		return nil
	}
	if len(a.lengths) != n {
		return fmt.Errorf("regions: %s has %d lengths and %d images: give a length for each image", path,
			len(a.lengths), n)
	}
	for i, l := range a.lengths {
		if l < 0 || l > int64(a.most) {
			return fmt.Errorf("regions: %s: row %d has the length %d: it must be from 0 to %d, the regions of the "+
				"array", path, i, l, a.most)
		}
	}
	return nil
}

func (a *array) Len() int       { return a.features.Rows() }
func (a *array) Most() int      { return a.most }
func (a *array) Width() int     { return a.width }
func (a *array) Boxed() bool    { return a.boxes != nil }
func (a *array) Keys() []string { return nil }

func (a *array) Read(i int, features, boxes []float32) (int, error) {
	row, give := a.row(features, a.width)
	defer give()
	if err := a.features.Row(i, row); err != nil {
		return 0, err
	}
	n := a.length(i, row)
	room := min(n, len(features)/a.width)
	clear(features[copy(features, row[:room*a.width]):])
	if boxes == nil {
		return room, nil
	}
	clear(boxes)
	if a.boxes == nil {
		return room, nil
	}
	places, give := a.row(boxes, 4)
	defer give()
	if err := a.boxes.Row(i, places); err != nil {
		return 0, err
	}
	clear(boxes[copy(boxes, places[:4*room]):])
	if err := checkBoxes(boxes[:4*room], BoxError{Path: a.boxes.Path(), Row: i, Normalized: true}); err != nil {
		return 0, err
	}
	return room, nil
}

// row is memory for a whole image: dst where that is as long.
func (a *array) row(dst []float32, width int) (row []float32, give func()) {
	if len(dst) == a.most*width {
		return dst, func() {}
	}
	x := a.rows.Get().(*[]float32)
	return (*x)[:a.most*width], func() { a.rows.Put(x) }
}

// length is the number of regions of image i, whose features are row.
func (a *array) length(i int, row []float32) int {
	if a.lengths != nil {
		return int(a.lengths[i])
	}
	last := len(row) - 1
	for last >= 0 && row[last] == 0 {
		last--
	}
	return (last + a.width) / a.width
}

// same says whether two images have the same regions.
func (a *array) same(i, j int) (bool, error) {
	x, y := make([]float32, a.most*a.width), make([]float32, a.most*a.width)
	if err := errors.Join(a.features.Row(i, x), a.features.Row(j, y)); err != nil {
		return false, err
	}
	for k := range x {
		if x[k] != y[k] {
			return false, nil
		}
	}
	return true, nil
}

func (a *array) Close() error {
	err := a.features.Close()
	if a.boxes != nil {
		err = errors.Join(err, a.boxes.Close())
	}
	return err
}

// lengthsTensor reads the lengths of images, nil where a file has none.
func lengthsTensor(f *safetensors.File) ([]int64, error) {
	if _, ok := f.Lookup(lengthsName); !ok {
		return nil, nil
	}
	return f.Int64(lengthsName)
}
