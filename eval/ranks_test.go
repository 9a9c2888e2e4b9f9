package eval

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// gallery has images of the ids images; texts names for every text the id of its image. The
// texts of an id belong to its images in turn.
func gallery(t testing.TB, images, texts []int) *Correspondence {
	t.Helper()
	owner, of := make([]int, len(texts)), map[int][]int{}
	for i, id := range images {
		of[id] = append(of[id], i)
	}
	for j, id := range texts {
		owner[j] = of[id][0]
		of[id] = append(of[id][1:], owner[j])
	}
	return check.Get(NewCorrespondence(images, owner))(t)
}

// random is a gallery with what it was made from.
type random struct {
	*Correspondence
	ids    []int // of the images
	owner  []int // image of each text
	scores []float32
}

// right is the rule of right answers, word by word.
func (g random) right(image, text int) bool { return g.ids[image] == g.ids[g.owner[text]] }

// randomGallery has n images of as many ids, or for classes > 0 of at most that many, with 1
// to 4 texts each in shuffled order, and scores with many ties: integers below levels.
func randomGallery(t testing.TB, r *rand.Rand, n, classes, levels int) random {
	t.Helper()
	g := random{ids: r.Perm(n)}
	for i := range n {
		if classes > 0 {
			g.ids[i] = r.IntN(classes)
		}
		for range 1 + r.IntN(4) {
			g.owner = append(g.owner, i)
		}
	}
	r.Shuffle(len(g.owner), func(a, b int) { g.owner[a], g.owner[b] = g.owner[b], g.owner[a] })
	g.scores = make([]float32, n*len(g.owner))
	for i := range g.scores {
		g.scores[i] = float32(r.IntN(levels))
	}
	g.Correspondence = check.Get(NewCorrespondence(g.ids, g.owner))(t)
	return g
}

// naiveRanks sorts all candidates of every query by the scores s and looks for the first
// right one.
func (g random) naiveRanks(s []float32) *Ranks {
	n, t := len(g.ids), len(g.owner)
	out := &Ranks{I2T: make([]int, n), T2I: make([]int, t)}
	for i := range n {
		list := sortedList(t, t, func(j int) (float32, bool) { return s[i*t+j], g.right(i, j) })
		out.I2T[i] = slices.IndexFunc(list, func(j int) bool { return g.right(i, j) })
	}
	for j := range t {
		list := sortedList(n, n, func(i int) (float32, bool) { return s[i*t+j], g.right(i, j) })
		out.T2I[j] = slices.IndexFunc(list, func(i int) bool { return g.right(i, j) })
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
		// Images 0 and 2 are of one id, so texts 0 and 2 are right for both.
		{"two images of an id", []int{7, 8, 7}, []int{7, 8, 7},
			[]float32{1, 9, 5, 3, 6, 5, 7, 2, 4},
			[]int{1, 0, 0}, []int{0, 1, 1}},
		{"two images of an id, constant", []int{7, 8, 7}, []int{7, 8, 7},
			[]float32{1, 1, 1, 1, 1, 1, 1, 1, 1},
			[]int{1, 2, 1}, []int{1, 2, 1}},
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
		g := randomGallery(t, r, n, trial%4, 1+r.IntN(12))
		texts, scores := g.NumTexts(), g.scores
		want := g.naiveRanks(scores)

		k := NewRanker(g.Correspondence, r.IntN(2)*3)
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
				check.OK(t, pass(b.row, scores[b.row*texts:(b.row+b.n)*texts]))
			}
		}
		got := check.Get(k.Ranks())(t)
		if !sameRanks(got, want) {
			t.Fatalf("trial %d: ranks %v, want %v", trial, got, want)
		}
	}
}

func TestConstantScoresGiveNoRecall(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c := randomGallery(t, r, 40, 0, 1)
	ranks := check.Get(Rank(c.Correspondence, 7, Matrix(c.scores, c.NumTexts())))(t)
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

// Of texts with several right images the second pass compares the best score with the first
// pass, and no other may be above it.
func TestUnsteadyPositives(t *testing.T) {
	c := gallery(t, []int{7, 7, 8}, []int{7, 7, 8})
	first := []float32{1, 2, 0, 3, 2, 0, 0, 0, 5}
	for want, change := range map[string]func(s []float32){
		"image 1 and text 0 was 3 in the first pass and is 2 in":         func(s []float32) { s[3] = 2 },
		"image 0 and text 0 was at most 3 in the first pass and is 4 in": func(s []float32) { s[0] = 4 },
		"": func(s []float32) { s[0] = 0 }, // any order of the worse ones gives the same ranks
	} {
		pass := 0
		source := func(_, _ int, dst []float32) error {
			copy(dst, first)
			if pass++; pass == 2 {
				change(dst)
			}
			return nil
		}
		if _, err := Rank(c, 3, source); want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestRankerProtocol(t *testing.T) {
	c := gallery(t, []int{1, 2}, []int{1, 2})
	row := []float32{1, 2}
	r := NewRanker(c, 0)
	check := func(err error, want string) {
		t.Helper()
		check.Error(t, err, want)
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
		images []string
		texts  []int
		want   string
	}{
		{nil, nil, "no images"},
		{[]string{"a"}, []int{0, 1}, "text 1 describes image 1, which is not among the 1 images"},
		{[]string{"a"}, []int{-1}, "text 0 describes image -1"},
		{[]string{"a", "b"}, []int{0, 0}, "image 1 (id b) has no text"},
		{[]string{"a", "a"}, []int{0, 0}, "image 1 (id a) has no text"},
	} {
		if _, err := NewCorrespondence(tc.images, tc.texts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v %v: error %v, want %q", tc.images, tc.texts, err, tc.want)
		}
	}
}

// TestCorrespondenceKeepsItsTexts: what the caller does with the list afterwards changes no folds.
func TestCorrespondenceKeepsItsTexts(t *testing.T) {
	texts := []int{0, 1, 2, 3}
	c := check.Get(NewCorrespondence([]string{"a", "b", "c", "d"}, texts))(t)
	clear(texts)
	folds, err := c.Folds(2)
	if err != nil || !slices.Equal(folds[1].Texts, []int{2, 3}) {
		t.Errorf("%v %v, want the texts 2 and 3 in the second fold", folds, err)
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
		check.Get(Rank(c, 128, Matrix(scores, len(texts))))(b)
	}
}
