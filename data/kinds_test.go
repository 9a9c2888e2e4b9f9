package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/filetest"
)

// pngOf is image i of tests, 3x2 pixels of (10 i, 20 i, 30 i).
func pngOf(t testing.TB, i int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 3, 2))
	for p := range 6 {
		m.Set(p%3, p/3, color.RGBA{uint8(10 * i), uint8(20 * i), uint8(30 * i), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pixelsOf is what is decoded of it.
func pixelsOf(i int) *transform.Image {
	m := transform.NewImage(3, 2)
	for p := range 6 {
		copy(m.Pix[3*p:], []uint8{uint8(10 * i), uint8(20 * i), uint8(30 * i)})
	}
	return m
}

// pngFolder writes the images 0 to n-1 as images/<i>.png.
func pngFolder(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		filetest.Write(t, filepath.Join(dir, fmt.Sprintf("images/%d.png", i)), pngOf(t, i))
	}
	return dir
}

// naive is a data set in memory, in parts.
type naive struct {
	*Memory
	first []int
	mixed int
}

func (n naive) Parts() ([]int, int) { return n.first, n.mixed }

// checkSame holds a data set against a naive reading of it: each image with its captions, and the
// batches of training from any position and with any number of workers, of images and of pairs.
func checkSame(t *testing.T, ds Dataset, want naive) {
	t.Helper()
	if ds.Len() != want.Len() {
		t.Fatalf("%d images, want %d", ds.Len(), want.Len())
	}
	for i := range ds.Len() {
		if got := ds.Captions(i); !slices.Equal(got, want.Captions(i)) || numCaptions(ds, i) != len(got) || ds.ImageID(i) != want.ImageID(i) {
			t.Errorf("image %d: id %d, captions %q, want %d, %q", i, ds.ImageID(i), got, want.ImageID(i), want.Captions(i))
		}
		m, err := ds.Image(i)
		if (err == nil) != (want.Images[i] != nil) || err == nil && (m.W != want.Images[i].W || !bytes.Equal(m.Pix, want.Images[i].Pix)) {
			t.Errorf("image %d: %v, %v", i, m, err)
		}
	}
	for _, pairs := range []bool{false, true} {
		stream := func(ds Dataset) Stream {
			cfg := TrainConfig{Seed: 5, Pairs: pairs, Transform: transform.Train{Size: 4, ScaleMin: 0.5, Flip: true}, Text: &Texts{Tokenizer: letters{}, Tokens: 20}}
			s := trainOf(t, ds, cfg)
			return s
		}
		var other Dataset = want
		if want.first == nil {
			other = want.Memory
		}
		all := batchKeys(t, stream(other), 0, 9, 1)
		for first, workers := range []int{1, 2, 7} {
			if got := batchKeys(t, stream(ds), all[first].at, 9-first, workers); !slices.Equal(got, all[first:]) {
				t.Errorf("pairs %v: batches from %d on with %d workers differ:\n%v\nwant\n%v", pairs, first, workers, got, all[first:])
			}
		}
	}
}

// batchKey is a batch and the position that it starts at.
type batchKey struct {
	at  uint64
	key string
}

// batchKeys reads n batches of two samples.
func batchKeys(t *testing.T, s Stream, from uint64, n, workers int) (keys []batchKey) {
	t.Helper()
	l := newLoader(t, s, LoaderConfig{BatchSize: 2, Workers: workers, MaxBadShare: 1})
	defer l.Close()
	l.Start(from)
	for range n {
		at := l.Position()
		b := nextOf(t, l)
		keys = append(keys, batchKey{at, fmt.Sprint(b.Counters, b.Ints(batch.IDs), b.Ints(batch.Tokens), b.Floats(batch.Images))})
		l.Recycle(b)
	}
	return keys
}
