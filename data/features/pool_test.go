package features

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/filetest"
)

// pooled are 30 pairs with 3 of validation, 4 of the test, 10 used as pairs and 5 further images.
func pooled(t testing.TB, edit func(images, texts [][]float32)) PairsConfig {
	c := pairsOf(t, 30, edit)
	c.ValSamples, c.TestSamples, c.Paired = 3, 4, 10
	var more [][]float32
	for i := range 5 {
		more = append(more, []float32{float32(100 + i), 1})
	}
	c.ImagePool = filetest.Temp(t, "more.npy", npy(more))
	return c
}

// A pool is the rows that are not held back and then those of the further file, and no others.
func TestPool(t *testing.T) {
	p := open(t, pooled(t, nil), 3)
	images, err := p.ImagePool()
	if err != nil {
		t.Fatal(err)
	}
	texts, err := p.TextPool()
	if err != nil {
		t.Fatal(err)
	}
	if images.Rows() != 28 || images.Width() != 2 || texts.Rows() != 23 || texts.Width() != 3 {
		t.Errorf("%d rows of %d and %d of %d", images.Rows(), images.Width(), texts.Rows(), texts.Width())
	}
	held := append(rowsOf(t, p, "val"), rowsOf(t, p, "test")...)
	for _, pool := range []*Pool{images, texts} {
		var all []float32
		row := make([]float32, pool.Width())
		for i := range pool.Rows() {
			if err := pool.Row(i, row); err != nil {
				t.Fatal(err)
			}
			all = append(all, row...)
			if v := int32(row[0]); slices.Contains(held, v) || i > 0 && v <= int32(all[len(all)-2*pool.Width()]) {
				t.Errorf("row %d of the pool is row %d, and %v are held back", i, v, held)
			} else if place, ok := pool.Place(v); v < 30 && (!ok || int(place) != i) {
				t.Errorf("row %d is at %d (%v), want %d", v, place, ok, i)
			}
		}
		for first := range pool.Rows() {
			for n := range pool.Rows() - first {
				got := make([]float32, n*pool.Width())
				if err := pool.ReadRows(first, got); err != nil || !slices.Equal(got, all[first*pool.Width():(first+n)*pool.Width()]) {
					t.Errorf("%d rows from %d: %v, %v", n, first, got, err)
				}
			}
		}
		for _, i := range held {
			if _, ok := pool.Place(i); ok {
				t.Errorf("row %d, which is held back, is in the pool", i)
			}
		}
		for _, i := range []int{-1, pool.Rows()} {
			if err := pool.Row(i, row); err == nil || !strings.Contains(err.Error(), "there is no row") {
				t.Errorf("row %d: %v", i, err)
			}
		}
		for _, c := range []struct{ first, length int }{{-1, pool.Width()}, {pool.Rows(), pool.Width()}, {0, pool.Width() + 1}} {
			if err := pool.ReadRows(c.first, make([]float32, c.length)); err == nil {
				t.Errorf("%+v is read", c)
			}
		}
	}
	if a, b := images.Name(0), images.Name(27); !strings.HasSuffix(a, fmt.Sprintf("image.npy row %d", images.rows[0])) || !strings.HasSuffix(b, "more.npy row 4") {
		t.Errorf("rows are called %q and %q", a, b)
	}
}

// Rows that no pair of an index names may be seen in training.
func TestPoolOfAnIndex(t *testing.T) {
	p := open(t, indexed(t, "a.tsv", []byte("split\timage_row\ttext_row\ntrain\t0\t0\ntrain\t0\t5\nval\t2\t7\nval\t2\t8\ntest\t3\t2\n")), 1)
	images, err := p.ImagePool()
	if err != nil || !slices.Equal(images.rows, []int32{0, 1, 4, 5}) {
		t.Errorf("images %v, %v", images, err)
	}
	texts, err := p.TextPool()
	if err != nil || !slices.Equal(texts.rows, []int32{0, 1, 3, 4, 5, 6, 9, 10, 11}) {
		t.Errorf("texts %v, %v", texts, err)
	}
}

// Pools of other rows, or of files that were written anew, have other fingerprints.
func TestFingerprint(t *testing.T) {
	c, seen := pooled(t, nil), map[string]string{}
	add := func(what string) {
		t.Helper()
		pool, err := open(t, c, 3).ImagePool()
		if err != nil {
			t.Fatal(err)
		}
		sum, err := pool.Fingerprint(t.Context())
		if again, _ := pool.Fingerprint(t.Context()); err != nil || sum != again {
			t.Errorf("%s: %s, then %s (%v)", what, sum, again, err)
		}
		if other, ok := seen[sum]; ok {
			t.Errorf("%s has the fingerprint of %s", what, other)
		}
		seen[sum] = what
	}
	add("one split")
	c.Seed = 9
	add("another split")
	b := filetest.Read(t, c.Image)
	b[len(b)-9] ^= 1 // of the last row but one, and the time stays
	st, err := os.Stat(c.Image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(c.Image, b, 0o666), os.Chtimes(c.Image, time.Time{}, st.ModTime())); err != nil {
		t.Fatal(err)
	}
	add("one other number")
	c.Image = copyOf(t, c.Image)
	pool, err := open(t, c, 3).ImagePool()
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := pool.Fingerprint(t.Context()); err != nil || seen[sum] != "one other number" {
		t.Errorf("a copy has the fingerprint %s, that of %q: %v", sum, seen[sum], err)
	}
	c.ImagePool = ""
	add("no further file")
}

// copyOf returns the path of a copy of a file.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	b := filetest.Read(t, path)
	other := filepath.Join(t.TempDir(), filepath.Base(path))
	filetest.Write(t, other, b)
	return other
}

func TestPoolRefuses(t *testing.T) {
	c := pooled(t, nil)
	c.TextPool = c.ImagePool
	if _, err := Open(c, 1); err == nil || !strings.Contains(err.Error(), "have 2 numbers, and those of") {
		t.Errorf("another width: %v", err)
	}
	c.TextPool = "none.npy"
	if _, err := Open(c, 1); err == nil || !strings.Contains(err.Error(), "none.npy") {
		t.Errorf("no file: %v", err)
	}
	c = pooled(t, func(images, _ [][]float32) { images[5][1] = float32(math.NaN()) })
	c.ValSamples, c.TestSamples = 0, 0
	images, err := open(t, c, 1).ImagePool()
	if err != nil {
		t.Fatal(err)
	}
	if err := images.Row(5, make([]float32, 2)); err == nil || !strings.Contains(err.Error(), "image.npy: row 5 is not finite") {
		t.Errorf("a row that is not finite: %v", err)
	}
}

// A centred pool has the rows of the files minus the mean of those that training may see, at unit
// length, however they are read; samples and sets have them as they are.
func TestCentredPool(t *testing.T) {
	c := pooled(t, func(images, texts [][]float32) { images[4][1], texts[7][0] = 9, float32(math.Inf(1)) })
	plain := open(t, c, 3)
	c.Center = true
	p := open(t, c, 3)
	if a, b := plain.Centres(); a != nil || b != nil {
		t.Error("means that nobody asked for")
	}
	for side, pools := range map[string][2]func() (*Pool, error){"image": {plain.ImagePool, p.ImagePool}, "text": {plain.TextPool, p.TextPool}} {
		raw, err := pools[0]()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pools[1]()
		if err != nil {
			t.Fatal(err)
		}
		d, n := raw.Width(), 0
		rows, mean := make([]float32, raw.Rows()*d), make([]float64, d)
		if err := raw.ReadRows(0, rows); err != nil {
			t.Fatal(err)
		}
		for row := range slices.Chunk(rows, d) {
			if math.IsInf(float64(row[0]), 0) {
				continue
			}
			n++
			for j, v := range row {
				mean[j] += float64(v)
			}
		}
		block, one := make([]float32, len(rows)), make([]float32, d)
		if err := got.ReadRows(0, block); err != nil {
			t.Fatal(err)
		}
		for i := range raw.Rows() {
			if math.IsInf(float64(rows[i*d]), 0) {
				continue
			}
			want, sq := make([]float64, d), 0.0
			for j := range want {
				want[j] = float64(rows[i*d+j]) - mean[j]/float64(n)
				sq += want[j] * want[j]
			}
			if err := got.Row(i, one); err != nil {
				t.Fatal(err)
			}
			for j := range want {
				if w := want[j] / math.Sqrt(sq); !(math.Abs(float64(one[j])-w) <= 1e-5) || one[j] != block[i*d+j] {
					t.Fatalf("%s %d: %v and %v, want %v in column %d", side, i, one, block[i*d:(i+1)*d], w, j)
				}
			}
		}
		a, err := raw.Fingerprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b, err := got.Fingerprint(t.Context()); err != nil || a == b {
			t.Errorf("%s: lists of raw rows would be taken for centred ones (%v)", side, err)
		}
	}
}
