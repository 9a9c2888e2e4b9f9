package descriptor

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/transform"
)

// half is a picture whose left half has one colour and whose right half another.
func half(w, h int, left, right [3]uint8) *transform.Image {
	m := transform.NewImage(w, h)
	for i := range w * h {
		c := left
		if i%w >= w/2 {
			c = right
		}
		copy(m.Pix[3*i:], c[:])
	}
	return m
}

func TestImage(t *testing.T) {
	m := half(24, 24, [3]uint8{200, 100, 0}, [3]uint8{0, 100, 200})
	x := Image(m)
	// Red is 100 above the mean on the left and below it on the right, blue the other way round. Both halves are of one
	// brightness, so there are no edges.
	c := float32(1 / math.Sqrt(2*144))
	for i := range 144 {
		want := [3]float32{c, 0, -c}
		if i%12 >= 6 {
			want = [3]float32{-c, 0, c}
		}
		for k, w := range want {
			if got := x[3*i+k]; !(math.Abs(float64(got-w)) <= 1e-6) {
				t.Fatalf("cell %d colour %d: got %v, want %v", i, k, got, w)
			}
		}
	}
	// Between a dark and a light half there is an edge, in the middle columns of cells.
	x = Image(half(24, 24, [3]uint8{}, [3]uint8{255, 255, 255}))
	for i, v := range x[432:] {
		column, direction := i/directions%edgeCells, i%directions
		if there := v > 0; there != (direction == 0 && (column == 2 || column == 3)) {
			t.Errorf("cell column %d has %v in direction %d", column, v, direction)
		}
	}
	for _, v := range Image(half(14, 13, [3]uint8{9, 9, 9}, [3]uint8{9, 9, 9})) {
		if v != 0 {
			t.Fatal("a picture of one colour is not 0")
		}
	}
}

func TestText(t *testing.T) {
	x, sum := Text("A red circle."), 0.0
	for i, v := range x {
		sum += float64(v) * float64(v)
		if y := Text(" a RED circle")[i]; y != v {
			t.Fatal("capitals, spaces and marks count")
		}
	}
	if !(math.Abs(sum-1) <= 1e-6) {
		t.Errorf("length %v", sum)
	}
	dot := func(a, b string) (sum float64) {
		y := Text(b)
		for i, v := range Text(a) {
			sum += float64(v) * float64(y[i])
		}
		return sum
	}
	if same, swapped, other := dot("a red circle left", "a red circle left"), dot("a red circle", "a circle red"), dot("a red circle", "two blue stars"); same < .999 || swapped > .95 || swapped < .5 || !(math.Abs(other) <= .3) {
		t.Errorf("cosines %v, %v, %v", same, swapped, other)
	}
}

func TestWrite(t *testing.T) {
	red, blue := half(8, 8, [3]uint8{255, 0, 0}, [3]uint8{}), half(8, 8, [3]uint8{}, [3]uint8{0, 0, 255})
	dir := t.TempDir()
	ds := &data.Memory{Images: []*transform.Image{red, blue, red}, Texts: [][]string{{"red\nleft", "a red half"}, {}, {"again"}}}
	w, err := Write(t.Context(), ds, dir, func(int, int) {})
	if err != nil || w != (Written{2, 3, 1, true}) {
		t.Fatalf("%+v: %v", w, err)
	}
	for name, want := range map[string]string{PairsFile: "image_row\ttext_row\n0\t0\n0\t1\n1\t2\n", TextsList: "red left\na red half\nagain\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, ImagesList)); err != nil || strings.Count(string(b), "\n") != 2 {
		t.Errorf("%q, %v", b, err)
	}
	p, err := features.Open(features.PairsConfig{Image: filepath.Join(dir, ImageFile), Text: filepath.Join(dir, TextFile), Index: filepath.Join(dir, PairsFile)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, TextWidth)
	if err := p.Texts().Row(1, row); err != nil || row[0] != Text("a red half")[0] || p.Images().Rows() != 2 || p.Images().Width() != ImageWidth {
		t.Errorf("%d images of %d: %v", p.Images().Rows(), p.Images().Width(), err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	other := t.TempDir()
	if _, err := Write(ctx, ds, other, func(int, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if list, err := os.ReadDir(other); err != nil || len(list) != 0 {
		t.Errorf("%v are left behind (%v)", list, err)
	}
}
