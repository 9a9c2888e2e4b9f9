package eval

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func gallery(t testing.TB, images, texts []int) *Correspondence {
	t.Helper()
	c, err := NewCorrespondence(images, texts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// randomGallery has images with 1 to 4 texts in shuffled order and scores with
// many ties: integers below levels.
func randomGallery(t testing.TB, r *rand.Rand, n, levels int) (*Correspondence, []float32) {
	t.Helper()
	images := r.Perm(n)
	var texts []int
	for _, id := range images {
		for range 1 + r.IntN(4) {
			texts = append(texts, id)
		}
	}
	r.Shuffle(len(texts), func(a, b int) { texts[a], texts[b] = texts[b], texts[a] })
	scores := make([]float32, n*len(texts))
	for i := range scores {
		scores[i] = float32(r.IntN(levels))
	}
	return gallery(t, images, texts), scores
}

// naiveRanks applies the rule word by word to the full matrix.
func naiveRanks(c *Correspondence, s []float32) *Ranks {
	n, t := c.NumImages(), c.NumTexts()
	out := &Ranks{I2T: make([]int, n), T2I: make([]int, t)}
	for i := range n {
		out.I2T[i] = t
		for _, own := range c.textsOf[i] {
			rank := 0
			for j := range t {
				if c.imageOf[j] != i && s[i*t+j] >= s[i*t+own] {
					rank++
				}
			}
			out.I2T[i] = min(out.I2T[i], rank)
		}
	}
	for j := range t {
		own := c.imageOf[j]
		for i := range n {
			if i != own && s[i*t+j] >= s[own*t+j] {
				out.T2I[j]++
			}
		}
	}
	return out
}

func TestHandMade(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tc := range []struct {
		name          string
		images, texts []int
		scores        []float32
		i2t, t2i      []int
	}{
		{"perfect", []int{1, 2, 3}, []int{1, 2, 3},
			[]float32{9, 1, 2, 1, 9, 2, 1, 2, 9},
			[]int{0, 0, 0}, []int{0, 0, 0}},
		{"not symmetric", []int{1, 2, 3}, []int{1, 2, 3},
			[]float32{5, 7, 6, 1, 2, 3, 4, 8, 9},
			[]int{2, 1, 0}, []int{0, 2, 0}},
		{"constant", []int{1, 2, 3}, []int{1, 2, 3},
			[]float32{4, 4, 4, 4, 4, 4, 4, 4, 4},
			[]int{2, 2, 2}, []int{2, 2, 2}},
		{"one tie", []int{1, 2}, []int{1, 2},
			[]float32{3, 3, 1, 5},
			[]int{1, 0}, []int{0, 0}},
		// Image 8 has texts 0 and 2: its best is text 2 (6), behind text 1 (7).
		{"several texts, mixed order", []int{7, 8}, []int{8, 7, 8},
			[]float32{5, 9, 1, 4, 7, 6},
			[]int{0, 1}, []int{1, 0, 0}},
		{"ties among own texts do not hurt", []int{7, 8}, []int{7, 7, 7, 8},
			[]float32{2, 2, 2, 1, 0, 0, 0, 3},
			[]int{0, 0}, []int{0, 0, 0, 0}},
		{"constant, all candidates positive", []int{7}, []int{7, 7},
			[]float32{1, 1},
			[]int{0}, []int{0, 0}},
		{"constant, uneven texts", []int{7, 8}, []int{7, 7, 7, 8},
			[]float32{1, 1, 1, 1, 1, 1, 1, 1},
			[]int{1, 3}, []int{1, 1, 1, 1}},
		{"infinities", []int{1, 2}, []int{1, 2},
			[]float32{inf, -inf, inf, -inf},
			[]int{0, 1}, []int{1, 1}},
	} {
		c := gallery(t, tc.images, tc.texts)
		for chunk := 1; chunk <= len(tc.images)+1; chunk++ {
			r, err := Rank(c, chunk, Matrix(tc.scores, len(tc.texts)))
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if !reflect.DeepEqual(r.I2T, tc.i2t) || !reflect.DeepEqual(r.T2I, tc.t2i) {
				t.Errorf("%s, chunk %d: ranks %v %v, want %v %v", tc.name, chunk, r.I2T, r.T2I, tc.i2t, tc.t2i)
			}
		}
	}
}

// Blocks of random heights in random order, cut differently in both passes,
// give what the naive rule gives on the full matrix.
func TestChunksAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		n := 1 + r.IntN(20)
		c, scores := randomGallery(t, r, n, 1+r.IntN(12))
		texts := c.NumTexts()
		want := naiveRanks(c, scores)

		k := NewRanker(c, r.IntN(2)*3)
		for _, pass := range []func(int, []float32) error{k.Positives, k.Count} {
			type block struct{ row, n int }
			var blocks []block
			for row := 0; row < n; {
				h := min(1+r.IntN(6), n-row)
				blocks = append(blocks, block{row, h})
				row += h
			}
			r.Shuffle(len(blocks), func(a, b int) { blocks[a], blocks[b] = blocks[b], blocks[a] })
			for _, b := range blocks {
				if err := pass(b.row, scores[b.row*texts:(b.row+b.n)*texts]); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := k.Ranks()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("trial %d: ranks %v, want %v", trial, got, want)
		}
	}
}

func TestConstantScoresGiveNoRecall(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c, scores := randomGallery(t, r, 40, 1)
	ranks, err := Rank(c, 7, Matrix(scores, c.NumTexts()))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range ranks.Metrics().Map() {
		if strings.Contains(name, "_r") && !strings.Contains(name, "rank") && v != 0 {
			t.Errorf("%s = %g with constant scores", name, v)
		}
	}
}

func TestRankErrors(t *testing.T) {
	c := gallery(t, []int{1, 2, 3}, []int{1, 2, 3})
	nan := float32(math.NaN())
	fail := errors.New("no power")
	flips := float32(0)
	for _, tc := range []struct {
		name   string
		chunk  int
		source Source
		want   string
	}{
		{"NaN beside the positives", 2, Matrix([]float32{1, 2, 3, 4, 5, nan, 7, 8, 9}, 3), "image 1 and text 2 is NaN"},
		{"NaN at a positive", 2, Matrix([]float32{1, 2, 3, 4, nan, 6, 7, 8, 9}, 3), "image 1 and text 1 is NaN"},
		{"short matrix", 3, Matrix([]float32{1, 2, 3}, 3), "has 3 values"},
		{"chunk", 0, Matrix(nil, 3), "chunk must be > 0 (got 0)"},
		{"source", 1, func(int, int, []float32) error { return fail }, "no power"},
		{"unsteady source", 3, func(_, _ int, dst []float32) error {
			flips++
			for i := range dst {
				dst[i] = flips
			}
			return nil
		}, "image 0 and text 0 was 1 in the first pass and is 2"},
	} {
		if _, err := Rank(c, tc.chunk, tc.source); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestRankerProtocol(t *testing.T) {
	c := gallery(t, []int{1, 2}, []int{1, 2})
	row := []float32{1, 2}
	r := NewRanker(c, 0)
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check(r.Count(0, row), "seen 0 of 2 images")
	check(r.Positives(0, row[:1]), "does not fit")
	check(r.Positives(1, []float32{1, 2, 3, 4}), "does not fit")
	check(r.Positives(-1, row), "does not fit")
	for i := range 2 {
		if err := r.Positives(i, row); err != nil {
			t.Fatal(err)
		}
	}
	check(r.Positives(1, row), "image 1 was fed twice")
	if err := r.Count(1, row); err != nil {
		t.Fatal(err)
	}
	_, err := r.Ranks()
	check(err, "image 0 was not fed to Count")
	if r.Candidates() != nil {
		t.Error("candidates though none were asked for")
	}
}

func TestCorrespondenceErrors(t *testing.T) {
	for _, tc := range []struct {
		images, texts []string
		want          string
	}{
		{nil, nil, "no images"},
		{[]string{"a", "b", "a"}, []string{"a", "b"}, "images 0 and 2 have the same id (a)"},
		{[]string{"a"}, []string{"a", "z"}, "text 1 describes image id z"},
		{[]string{"a", "b"}, []string{"a", "a"}, "image 1 (id b) has no text"},
	} {
		if _, err := NewCorrespondence(tc.images, tc.texts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v %v: error %v, want %q", tc.images, tc.texts, err, tc.want)
		}
	}
}

// A COCO-sized gallery, cut to a tenth of its images.
func BenchmarkRank(b *testing.B) {
	const n = 500
	var images, texts []int
	for i := range n {
		images = append(images, i)
		for range 5 {
			texts = append(texts, i)
		}
	}
	c := gallery(b, images, texts)
	r := rand.New(rand.NewPCG(1, 1))
	scores := make([]float32, n*len(texts))
	for i := range scores {
		scores[i] = r.Float32()
	}
	b.SetBytes(int64(len(scores)))
	for b.Loop() {
		if _, err := Rank(c, 128, Matrix(scores, len(texts))); err != nil {
			b.Fatal(err)
		}
	}
}
