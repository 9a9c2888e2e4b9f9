package eval

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

// Counted by hand. I2T ranks 0 1 4 12: one below 1, three below 5 and 10; mean
// 17/4 + 1; the middle two are 1 and 4, floor(2.5) + 1 = 3.
// T2I ranks 0 0 5 9 30: two below 1 and 5, four below 10; mean 44/5 + 1; median 5 + 1.
func TestMetricsByHand(t *testing.T) {
	m := (&Ranks{I2T: []int{4, 0, 12, 1}, T2I: []int{9, 0, 30, 5, 0}}).Metrics()
	want := map[string]float64{
		"i2t_r1": 25, "i2t_r5": 75, "i2t_r10": 75, "i2t_mean_rank": 5.25, "i2t_median_rank": 3,
		"t2i_r1": 40, "t2i_r5": 40, "t2i_r10": 80, "t2i_mean_rank": 9.8, "t2i_median_rank": 6,
		"rsum": 335, "txt_r_mean": 175.0 / 3, "img_r_mean": 160.0 / 3, "r_mean": 335.0 / 6,
	}
	got := m.Map()
	for k, v := range want {
		if !near(got[k], v) {
			t.Errorf("%s = %g, want %g", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d metrics, want %d", len(got), len(want))
	}
	if (&Ranks{}).Metrics() != (Metrics{}) {
		t.Error("no queries, yet metrics")
	}
}

func TestChanceByHand(t *testing.T) {
	// 1,000 pairs: k/1000; mean 1001/2; half of the queries reach rank 500.
	ids := make([]int, 1000)
	for i := range ids {
		ids[i] = i
	}
	want := Direction{R1: 0.1, R5: 0.5, R10: 1, MeanRank: 500.5, MedianRank: 500}
	m := gallery(t, ids, ids).Chance()
	if !sameDirection(m.I2T, want) || !sameDirection(m.T2I, want) {
		t.Errorf("pairs: %+v, want %+v", m, want)
	}
	// Two images; the first has 3 of 4 texts. Image 1: R@1 3/4, rank 1 on average
	// (4+1)/(3+1) = 1.25. Image 2: R@1 1/4, mean rank 2.5. R@5 counts all 4 texts.
	m = gallery(t, []int{1, 2}, []int{1, 2, 1, 1}).Chance()
	if w := (Direction{R1: 50, R5: 100, R10: 100, MeanRank: 1.875, MedianRank: 1}); !sameDirection(m.I2T, w) {
		t.Errorf("uneven i2t: %+v, want %+v", m.I2T, w)
	}
	if w := (Direction{R1: 50, R5: 100, R10: 100, MeanRank: 1.5, MedianRank: 1}); !sameDirection(m.T2I, w) {
		t.Errorf("uneven t2i: %+v, want %+v", m.T2I, w)
	}
	// Four classes of 5, 10, 20 and 25 images with a text each: a query of m positives finds
	// one by m/60, so R@1 is the sum of the squared shares of the classes.
	var classes []int
	for k, m := range []int{5, 10, 20, 25} {
		classes = append(classes, slices.Repeat([]int{k}, m)...)
	}
	each := make([]int, 60)
	for i := range each {
		each[i] = i
	}
	c := check.Get(NewCorrespondence(classes, each))(t)
	m = c.Chance()
	if w := 100 * float64(25+100+400+625) / 3600; !near(m.I2T.R1, w) || !near(m.T2I.R1, w) || m.I2T.MedianRank != 2 {
		t.Errorf("classes: %+v, want R@1 %g and median rank 2", m, w)
	}
	// Flickr30K test: 1 - C(4995,k)/C(5000,k), computed with exact integers.
	images, texts := make([]int, 1000), make([]int, 5000)
	for i := range texts {
		images[i/5], texts[i] = i/5, i/5
	}
	m = gallery(t, images, texts).Chance()
	for k, v := range map[int64]float64{1: m.I2T.R1, 5: m.I2T.R5, 10: m.I2T.R10} {
		if w := 100 * (1 - binomialRatio(4995, 5000, k)); !near(v, w) {
			t.Errorf("R@%d = %g, want %g", k, v, w)
		}
	}
}

// binomialRatio is C(a,k)/C(b,k) from exact integers.
func binomialRatio(a, b, k int64) float64 {
	var x, y big.Int
	q, _ := new(big.Rat).SetFrac(x.Binomial(a, k), y.Binomial(b, k)).Float64()
	return q
}

func sameDirection(a, b Direction) bool {
	return near(a.R1, b.R1) && near(a.R5, b.R5) && near(a.R10, b.R10) && near(a.MeanRank, b.MeanRank) &&
		a.MedianRank == b.MedianRank
}

// Random scores must land at the chance level, with an id for every image and with few.
func TestChanceBySimulation(t *testing.T) {
	for _, classes := range []int{0, 3} {
		r := rand.New(rand.NewPCG(5, 6))
		c := randomGallery(t, r, 12, classes, 1)
		const trials = 3000
		all := make([]Metrics, trials)
		for i := range all {
			for k := range c.scores {
				c.scores[k] = r.Float32()
			}
			ranks := check.Get(Rank(c.Correspondence, 12, Matrix(c.scores, c.NumTexts())))(t)
			all[i] = ranks.Metrics()
		}
		got, want := Mean(all).Map(), c.Chance().Map()
		for k, v := range want {
			if strings.HasSuffix(k, "median_rank") {
				continue // the mean of medians is not the median of the mixture
			}
			if !(math.Abs(got[k]-v) <= 0.02*(1+v)) {
				t.Errorf("%d classes, %s: simulated %.3f, chance %.3f", classes, k, got[k], v)
			}
		}
	}
}

// foldMetrics ranks each of n folds on its own and returns the mean of every metric over
// the folds, and the folds' own metrics.
func foldMetrics(c *Correspondence, n, chunk int, source Source) (Metrics, []Metrics, error) {
	folds, err := c.Folds(n)
	if err != nil {
		return Metrics{}, nil, err
	}
	each := make([]Metrics, n)
	for i, f := range folds {
		ranks, err := Rank(f.Corr, chunk, f.Source(source, c.NumTexts()))
		if err != nil {
			return Metrics{}, nil, fmt.Errorf("fold %d: %w", i, err)
		}
		each[i] = ranks.Metrics()
	}
	return Mean(each), each, nil
}

// Each fold must equal the evaluation of the gallery cut down to it by ids.
func TestFoldsAgainstCutGalleries(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 60 {
		const folds, size = 5, 4
		g := randomGallery(t, r, folds*size, trial%4, 15)
		texts, scores := g.NumTexts(), g.scores
		avg, each := check.Get2(foldMetrics(g.Correspondence, folds, 3, Matrix(scores, texts)))(t)
		rsum := 0.0
		for f := range folds {
			cut := random{ids: g.ids[f*size:][:size]}
			for i := range size {
				for j, owner := range g.owner {
					if owner/size == f {
						cut.scores = append(cut.scores, scores[(f*size+i)*texts+j])
						if i == 0 {
							cut.owner = append(cut.owner, owner%size)
						}
					}
				}
			}
			want := cut.naiveRanks(cut.scores).Metrics()
			if each[f] != want {
				t.Fatalf("fold %d: %+v, want %+v", f, each[f], want)
			}
			rsum += want.RSum() / folds
		}
		if !near(avg.RSum(), rsum) {
			t.Fatalf("rsum %g, want %g", avg.RSum(), rsum)
		}
	}
}

func TestFoldErrors(t *testing.T) {
	c := gallery(t, []int{1, 2, 3}, []int{1, 2, 3})
	for _, n := range []int{0, 2, 4} {
		if _, err := c.Folds(n); err == nil {
			t.Errorf("3 images in %d folds: no error", n)
		}
	}
	nan := float32(math.NaN())
	_, _, err := foldMetrics(c, 3, 1, Matrix([]float32{1, 0, 0, 0, 1, 0, 0, 0, nan}, 3))
	check.Error(t, err, "fold 2")
}

// A single fold is the whole gallery.
func TestOneFold(t *testing.T) {
	g := randomGallery(t, rand.New(rand.NewPCG(1, 9)), 9, 4, 30)
	avg, _ := check.Get2(foldMetrics(g.Correspondence, 1, 4, Matrix(g.scores, g.NumTexts())))(t)
	if want := g.naiveRanks(g.scores).Metrics(); !reflect.DeepEqual(avg, want) {
		t.Errorf("%+v, want %+v", avg, want)
	}
}

func ExampleTable() {
	c, err := NewCorrespondence([]int{1, 2, 3}, []int{0, 1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	scores := []float32{
		5, 7, 6,
		1, 2, 3,
		4, 8, 9,
	}
	ranks, err := Rank(c, 2, Matrix(scores, 3))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(Table([]Result{{"cosine", ranks.Metrics()}}, c.Chance()))
	// Output:
	//                                   cosine    chance
	// image to text  R@1  %               33.3      33.3
	//                R@5  %              100.0     100.0
	//                R@10 %              100.0     100.0
	//                mean rank             2.0       2.0
	//                median rank           2.0       2.0
	// text to image  R@1  %               66.7      33.3
	//                R@5  %              100.0     100.0
	//                R@10 %              100.0     100.0
	//                mean rank             1.7       2.0
	//                median rank           1.0       2.0
	// sum of recalls                     500.0     466.7
	// mean of recalls %                   83.3      77.8
}

// The mean of equal results is that result, of any number of folds: 23 times a 23rd is less than 1.
func TestMeanOfEqualFolds(t *testing.T) {
	one := Direction{R1: 100, R5: 100, R10: 100, MeanRank: 1, MedianRank: 1}
	for n := 1; n < 100; n++ {
		if got := Mean(slices.Repeat([]Metrics{{I2T: one, T2I: one}}, n)); got.I2T != one || got.T2I != one {
			t.Errorf("%d folds: %+v", n, got)
		}
		all := Precision{I2T: PrecisionAt{100, 10}, T2I: PrecisionAt{20, 10}, I2TChance: 1, T2IChance: 2}
		if got := MeanPrecision(slices.Repeat([]Precision{all}, n)); got != all {
			t.Errorf("%d folds: %+v", n, got)
		}
	}
}
