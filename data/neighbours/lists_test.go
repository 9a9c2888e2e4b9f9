package neighbours

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/ops/geometric"
)

// engine starts an engine of two threads.
func engine(t testing.TB) *compute.Engine {
	t.Helper()
	e, err := compute.New(compute.Options{Backend: "builtin", Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// rows is n random rows of width d.
func rows(n, d int, seed uint64) []float32 {
	r, x := rand.New(rand.NewPCG(seed, 1)), make([]float32, n*d)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// file writes rows of width d.
func file(t testing.TB, x []float32, d int) string {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, []safetensors.Tensor{{Name: "x", Shape: []int{len(x) / d, d}, Data: x}}, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	filetest.Write(t, path, b.Bytes())
	return path
}

// some is 60 pairs, of which 8 are held back and 20 used as pairs, and 30 further images. edit may
// change the images and the texts.
func some(t testing.TB, edit func(images, texts []float32)) features.PairsConfig {
	t.Helper()
	images, texts := rows(60, 6, 1), rows(60, 5, 2)
	if edit != nil {
		edit(images, texts)
	}
	return features.PairsConfig{Image: file(t, images, 6), Text: file(t, texts, 5), ImagePool: file(t, rows(30, 6, 3), 6),
		Division: features.Division{ValSamples: 5, TestSamples: 3, Paired: 20, Seed: 9}}
}

func open(t testing.TB, c features.PairsConfig) *features.Pairs {
	t.Helper()
	p, err := features.Open(c, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// nearest lists the rows of a pool by falling cosine to row i, without it: the definition.
func nearest(t testing.TB, pool *features.Pool, i int32) []int32 {
	t.Helper()
	at := func(i int32) (row []float32) {
		row = make([]float32, pool.Width())
		if err := pool.Row(int(i), row); err != nil {
			t.Fatal(err)
		}
		return row
	}
	cos := func(x, y []float32) float64 {
		var xy, xx, yy float64
		for k := range x {
			xy, xx, yy = xy+float64(x[k])*float64(y[k]), xx+float64(x[k])*float64(x[k]), yy+float64(y[k])*float64(y[k])
		}
		return xy / math.Sqrt(xx*yy)
	}
	x, scores := at(i), make([]float64, pool.Rows())
	var list []int32
	for j := range int32(pool.Rows()) {
		if scores[j] = cos(x, at(j)); j != i {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		if scores[a] > scores[b] {
			return -1
		}
		return 1
	})
	return list
}

// The closest neighbours are those of the definition, of all rows that training may see; the
// anchor is first or not there.
func TestClosest(t *testing.T) {
	p, e := open(t, some(t, nil)), engine(t)
	for _, anchor := range []bool{true, false} {
		c := Config{K: 4, Near: 9, Sampling: geometric.Closest, Anchor: anchor}
		images, err := Images(t.Context(), p, c, Options{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		texts, err := Texts(t.Context(), p, c, Options{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		if images.Pool().Rows() != 82 || texts.Pool().Rows() != 52 || images.Recall() != 1 {
			t.Errorf("pools of %d and %d rows, recall %v", images.Pool().Rows(), texts.Pool().Rows(), images.Recall())
		}
		train, err := p.Split("train")
		if err != nil || len(train) != 20 {
			t.Fatal(train, err)
		}
		further := false
		for _, q := range train {
			for _, l := range []*Lists{images, texts} {
				row := q.Image
				if l == texts {
					row = q.Text
				}
				at, _ := l.Pool().Place(row)
				want := nearest(t, l.Pool(), at)
				if anchor {
					want = append([]int32{at}, want...)
				}
				got := make([]int32, 4)
				if err := l.Draw(1, 2, row, got); err != nil || !slices.Equal(got, want[:4]) {
					t.Errorf("%s %d: %v, %v, want %v", l.side, row, got, err, want[:4])
				}
				further = further || l == images && slices.Max(got) >= 52
			}
		}
		if !further {
			t.Error("no neighbour is of the further file")
		}
	}
}

// Draws are without replacement among the M nearest, by the law, and a function of seed and counter.
func TestDraw(t *testing.T) {
	p, e := open(t, some(t, nil)), engine(t)
	train, err := p.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	row := train[3].Image
	const n, m, k = 20000, 6, 3
	for law, weight := range map[string]func(rank int) float64{
		geometric.Uniform: func(int) float64 { return 1 },
		geometric.Biased:  func(rank int) float64 { return 1 / float64(1+rank) },
	} {
		l, err := Images(t.Context(), p, Config{K: k, Near: m, Sampling: law}, Options{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		at, _ := l.Pool().Place(row)
		near := nearest(t, l.Pool(), at)[:m]
		sum := 0.0
		for rank := range m {
			sum += weight(rank)
		}
		var first [m]int
		dst, again := make([]int32, k), make([]int32, k)
		differ := false
		for c := range uint64(n) {
			if err := l.Draw(7, c, row, dst); err != nil {
				t.Fatal(err)
			}
			for i, r := range dst {
				rank := slices.Index(near, r)
				if rank < 0 || slices.Contains(dst[:i], r) {
					t.Fatalf("%s: drew %v of %v", law, dst, near)
				}
				if i == 0 {
					first[rank]++
				}
			}
			if c == 5 {
				if err := l.Draw(7, 5, row, again); err != nil || !slices.Equal(dst, again) {
					t.Errorf("%s: %v, then %v for the same sample (%v)", law, dst, again, err)
				}
			}
			if c < 20 {
				if err := l.Draw(8, c, row, again); err != nil {
					t.Fatal(err)
				}
				differ = differ || !slices.Equal(dst, again)
			}
		}
		if !differ {
			t.Errorf("%s: two seeds draw the same", law)
		}
		for rank, count := range first {
			share := weight(rank) / sum
			if got := float64(count) / n; !(math.Abs(got-share) <= 5*math.Sqrt(share*(1-share)/n)) {
				t.Errorf("%s: rank %d is drawn first in %.4f, want %.4f", law, rank, got, share)
			}
		}
	}
}

// A sample of the stream has the draws of its own rows; both sides have random numbers of their own,
// and the same again after a restart.
func TestStream(t *testing.T) {
	p, e := open(t, some(t, nil)), engine(t)
	c := Config{K: 5, Near: 12, Sampling: geometric.Biased, Anchor: true}
	stream := func() *features.Stream {
		images, err := Images(t.Context(), p, c, Options{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		texts, err := Texts(t.Context(), p, c, Options{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		return p.Stream(features.StreamConfig{ImageNeighbours: images, TextNeighbours: texts})
	}
	a, b := stream(), stream()
	load := func(s *features.Stream, from uint64) *data.Batch {
		l, err := data.NewLoader(s, data.LoaderConfig{BatchSize: 8, Columns: s.Columns(), Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		l.Start(from)
		for {
			x, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if x.Counter >= 40 {
				return x
			}
			l.Recycle(x)
		}
	}
	x, y := load(a, 0), load(b, 40)
	for _, name := range []string{batch.ImageNeighbours, batch.TextNeighbours} {
		if !slices.Equal(x.Ints(name), y.Ints(name)) || slices.Max(x.Ints(name)) == 0 {
			t.Errorf("%s of a run and of one that goes on: %v and %v", name, x.Ints(name), y.Ints(name))
		}
	}
	images, texts := a.Pools()
	for i, id := range x.Ints(batch.IDs) {
		if at, ok := images.(*features.Pool).Place(id); !ok || x.Ints(batch.ImageNeighbours)[5*i] != at {
			t.Errorf("sample %d does not begin with its own image", i)
		}
		if at, ok := texts.(*features.Pool).Place(id); !ok || x.Ints(batch.TextNeighbours)[5*i] != at {
			t.Errorf("sample %d does not begin with its own text", i)
		}
	}
	if i, tx := p.Stream(features.StreamConfig{}).Pools(); i != nil || tx != nil {
		t.Error("a stream without neighbours has pools")
	}
}

// Rows without a direction are nobody's neighbours, and have none.
func TestRowsWithoutDirection(t *testing.T) {
	train, err := open(t, some(t, nil)).Split("train")
	if err != nil {
		t.Fatal(err)
	}
	bad := train[2].Image
	pairs := open(t, some(t, func(images, texts []float32) {
		for i := range images {
			if row := int32(i / 6); row == bad || row != train[0].Image && row%7 == 0 {
				images[i] = 0
			}
		}
		texts[0] = float32(math.NaN())
	}))
	var notes []string
	l, err := Images(t.Context(), pairs, Config{K: 3, Near: 80, Sampling: geometric.Uniform}, Options{Engine: engine(t), Note: func(s string) { notes = append(notes, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "82 rows of the pool of images are zero or not finite") || !strings.Contains(notes[0], "x.safetensors row ") {
		t.Errorf("notes %q", notes)
	}
	dst, row := make([]int32, 3), make([]float32, 6)
	for c := range uint64(200) {
		if err := l.Draw(1, c, train[0].Image, dst); err != nil {
			t.Fatal(err)
		}
		for _, i := range dst {
			if err := l.Pool().Row(int(i), row); err != nil || row[0] == 0 && row[1] == 0 {
				t.Errorf("row %d is %v (%v)", i, row, err)
			}
		}
	}
	if err := l.Draw(1, 1, bad, dst); err == nil || !strings.Contains(err.Error(), "is zero or not finite and has none") {
		t.Errorf("got %v", err)
	}
	if _, err := Texts(t.Context(), pairs, Config{K: 3, Near: 9, Sampling: geometric.Uniform}, Options{Engine: engine(t)}); err != nil {
		t.Errorf("a text that is not finite: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	p, e := open(t, some(t, nil)), engine(t)
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{K: 53, Near: 80, Sampling: geometric.Closest, Anchor: true}, "has 51 that can be compared: lower objective.geometric.neighbours, or name more features in data.pairs.text_pool"},
		{Config{K: 52, Near: 80, Sampling: geometric.Closest}, "needs 52 rows beside the anchor"},
		{Config{K: 1, Near: 8, Sampling: geometric.Closest, Anchor: true}, "must have a row beside the anchor (got K = 1)"},
		{Config{K: 9, Near: 8, Sampling: geometric.Closest}, "9 neighbours cannot be drawn from the 8 nearest"},
		{Config{K: 4, Near: 8, Sampling: "near"}, `unknown sampling "near"`},
	} {
		if _, err := Texts(t.Context(), p, c.c, Options{Engine: e}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.c, err, c.want)
		}
	}
	if l, err := Texts(t.Context(), p, Config{K: 52, Near: 80, Sampling: geometric.Closest, Anchor: true}, Options{}); err != nil { // all of them, by an engine of its own
		t.Error(err)
	} else if err := l.Draw(1, 1, 1<<20, make([]int32, 52)); err == nil || !strings.Contains(err.Error(), "is in no pair of training") {
		t.Errorf("a row that is none: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Texts(ctx, p, Config{K: 4, Near: 8, Sampling: geometric.Closest}, Options{Engine: e}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A large pool is searched by an index, whose recall is told.
func TestIndexed(t *testing.T) {
	before := indexFrom
	indexFrom = 0
	defer func() { indexFrom = before }()
	var notes []string
	dir := t.TempDir()
	p := open(t, some(t, nil))
	for range 2 { // found, and read
		l, err := Images(t.Context(), p, Config{K: 4, Near: 9, Sampling: geometric.Closest}, Options{Engine: engine(t), Cache: dir, Note: func(s string) { notes = append(notes, s) }})
		if err != nil {
			t.Fatal(err)
		}
		if l.Recall() < 0.9 || len(notes) != 1 || !strings.Contains(notes[0], "9 nearest of 82 images for each of 20 were found by an index with recall ") {
			t.Errorf("recall %v, notes %q", l.Recall(), notes)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
