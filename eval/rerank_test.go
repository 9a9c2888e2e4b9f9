package eval

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// tableScorer looks second scores up in two matrices, images x texts.
type tableScorer struct {
	texts     int
	i2t, t2i  []float32
	first     []float32 // what must be told of each pair; nil: not looked at
	err       error
	numScored int
}

func (s *tableScorer) ScoreTexts(image int, texts []int, dst []float32) error {
	for k, j := range texts {
		if s.first != nil && dst[k] != s.first[image*s.texts+j] {
			return fmt.Errorf("first score %g of image %d and text %d", dst[k], image, j)
		}
		dst[k] = s.i2t[image*s.texts+j]
	}
	s.numScored += len(texts)
	return s.err
}

func (s *tableScorer) ScoreImages(text int, images []int, dst []float32) error {
	for k, i := range images {
		if s.first != nil && dst[k] != s.first[i*s.texts+text] {
			return fmt.Errorf("first score %g of image %d and text %d", dst[k], i, text)
		}
		dst[k] = s.t2i[i*s.texts+text]
	}
	s.numScored += len(images)
	return s.err
}

// The dense form of ALBEF's code: two N x T matrices of -100, the candidates'
// cells overwritten, ranked by the naive rule. Queries whose positive is in the
// list must agree; the others must keep their first rank.
func TestRerankAgainstDense(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	inside, outside := 0, 0
	for trial := range 200 {
		n := 2 + r.IntN(15)
		g := randomGallery(t, r, n, trial%5, 1+r.IntN(40))
		texts, first := g.NumTexts(), g.scores
		topK := 1 + r.IntN(8)
		s := &tableScorer{texts: texts, i2t: make([]float32, len(first)), t2i: make([]float32, len(first)), first: first}
		dense1, dense2 := make([]float32, len(first)), make([]float32, len(first))
		for i := range first {
			s.i2t[i], s.t2i[i] = float32(r.IntN(9)-4), float32(r.IntN(9)-4)
			dense1[i], dense2[i] = -100, -100
		}
		// Lists by full sorts, with the documented order.
		for i := range n {
			list := sortedList(texts, topK, func(j int) (float32, bool) { return first[i*texts+j], g.right(i, j) })
			for _, j := range list {
				dense1[i*texts+j] = s.i2t[i*texts+j]
			}
		}
		for j := range texts {
			list := sortedList(n, topK, func(i int) (float32, bool) { return first[i*texts+j], g.right(i, j) })
			for _, i := range list {
				dense2[i*texts+j] = s.t2i[i*texts+j]
			}
		}
		before, got := check.Get2(RankAndRerank(g.Correspondence, 1+r.IntN(5), topK, Matrix(first, texts), s))(t)
		if want := g.naiveRanks(first); !sameRanks(before, want) {
			t.Fatalf("trial %d: first ranks %v, want %v", trial, before, want)
		}
		if want := n*min(topK, texts) + texts*min(topK, n); s.numScored != want {
			t.Fatalf("%d pairs scored, want %d", s.numScored, want)
		}
		compare := func(name string, first, got, dense []int) {
			for q := range first {
				want := dense[q]
				if first[q] >= topK {
					want = first[q]
					outside++
				} else {
					inside++
				}
				if got[q] != want {
					t.Fatalf("trial %d, k %d, %s query %d: rank %d, want %d (first %d)", trial, topK, name, q, got[q],
						want, first[q])
				}
			}
		}
		compare("i2t", before.I2T, got.I2T, g.naiveRanks(dense1).I2T)
		compare("t2i", before.T2I, got.T2I, g.naiveRanks(dense2).T2I)
	}
	if inside < 500 || outside < 500 {
		t.Errorf("%d queries inside the list, %d outside: too few to show anything", inside, outside)
	}
}

// sortedList sorts all candidates by score, wrong before right, lower index.
func sortedList(n, k int, at func(int) (float32, bool)) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	sort.SliceStable(list, func(a, b int) bool {
		x, xRight := at(list[a])
		y, yRight := at(list[b])
		if x != y {
			return x > y
		}
		return !xRight && yRight
	})
	return list[:min(k, n)]
}

func TestCandidatesAreSorted(t *testing.T) {
	c := gallery(t, []int{1, 2}, []int{1, 2, 2, 1})
	scores := []float32{
		5, 5, 9, 1,
		7, 7, 7, 7,
	}
	r := check.Get(runRanker(c, 1, 3, Matrix(scores, 4)))(t)
	want := &Candidates{
		// Image 0 owns texts 0 and 3; at score 5 the wrong text 1 goes first.
		Texts:  [][]int{{2, 1, 0}, {0, 3, 1}},
		Images: [][]int{{1, 0}, {1, 0}, {0, 1}, {1, 0}},

		textScores:  [][]float32{{9, 5, 5}, {7, 7, 7}},
		imageScores: [][]float32{{7, 5}, {7, 5}, {9, 7}, {7, 1}},
	}
	if got := r.Candidates(); !reflect.DeepEqual(got, want) {
		t.Errorf("candidates %v, want %v", got, want)
	}
}

// A perfect second model repairs every query whose positive is in the list.
func TestRerankRepairs(t *testing.T) {
	c := gallery(t, []int{1, 2, 3}, []int{1, 2, 3})
	first := []float32{
		5, 7, 6,
		1, 2, 3,
		4, 8, 9,
	}
	ideal := []float32{1, 0, 0, 0, 1, 0, 0, 0, 1}
	_, got := check.Get2(RankAndRerank(c, 2, 2, Matrix(first, 3), &tableScorer{texts: 3, i2t: ideal, t2i: ideal}))(t)
	// Image 0 and text 1 had rank 2, beyond the list of two.
	if want := (&Ranks{I2T: []int{2, 0, 0}, T2I: []int{0, 2, 0}}); !sameRanks(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}

// Queries without a list keep their first rank, whatever the others get.
func TestRerankWithoutList(t *testing.T) {
	c := gallery(t, []int{1, 2}, []int{1, 2})
	first := &Ranks{I2T: []int{1, 1}, T2I: []int{1, 1}}
	ideal := &tableScorer{texts: 2, i2t: []float32{1, 0, 0, 1}, t2i: []float32{1, 0, 0, 1}}
	got, err := Rerank(c, first, &Candidates{Texts: [][]int{nil, {0, 1}}, Images: [][]int{{0, 1}, nil}}, ideal)
	if want := (&Ranks{I2T: []int{1, 0}, T2I: []int{0, 1}}); err != nil || !sameRanks(got, want) {
		t.Errorf("ranks %v, %v, want %v", got, err, want)
	}
}

func TestRerankErrors(t *testing.T) {
	c := gallery(t, []int{1, 2}, []int{1, 2})
	first := Matrix([]float32{1, 0, 0, 1}, 2)
	ok := []float32{1, 1, 1, 1}
	bad := []float32{1, 1, float32(math.NaN()), 1}
	for _, tc := range []struct {
		topK   int
		scorer *tableScorer
		want   string
	}{
		{0, &tableScorer{texts: 2, i2t: ok, t2i: ok}, "topK must be > 0"},
		{2, &tableScorer{texts: 2, i2t: bad, t2i: ok}, "image 1 and text 0 is NaN"},
		{2, &tableScorer{texts: 2, i2t: ok, t2i: bad}, "image 1 and text 0 is NaN"},
		{2, &tableScorer{texts: 2, i2t: ok, t2i: ok, err: errors.New("no power")}, "no power"},
	} {
		if _, _, err := RankAndRerank(c, 1, tc.topK, first, tc.scorer); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
}
