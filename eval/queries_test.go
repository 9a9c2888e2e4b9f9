package eval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// The shares of images have the metric as their mean, whatever texts an image has.
func TestPerImage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	textImage := []int{0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11}
	corr := check.Get(NewCorrespondence([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, textImage))(t)
	scores := make([]float32, 12*len(textImage))
	for i := range scores {
		scores[i] = random.Float32()
	}
	ranks := check.Get(Rank(corr, 5, Matrix(scores, len(textImage))))(t)
	values, q := ranks.Metrics().Map(), ranks.Queries(corr)
	for name := range recallWeights {
		sum := 0.0
		for _, x := range q.PerImage(name) {
			sum += x
		}
		if got := sum / 12; !(math.Abs(got-values[name]) <= 1e-9) || values[name] == 0 && name == RMeanName {
			t.Errorf("%s: mean of the shares %v, metric %v", name, got, values[name])
		}
	}
	// By hand: image 0 is found second, its two texts first and never, so R@5 is 1/12 and 1/16 of the queries.
	q = &Queries{I2T: []int{1, 50}, T2I: []int{0, 99, 99, 3}, TextImage: []int{0, 0, 1, 1}}
	for name, want := range map[string][2]float64{"i2t_r1": {0, 0}, "i2t_r5": {100, 0}, "t2i_r1": {50, 0},
		"t2i_r5": {50, 50}, "r_mean": {(0 + 100 + 100 + 150) / 6., 100 / 6.}} {
		got := q.PerImage(name)
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= 1e-9) {
				t.Errorf("%s of image %d: %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	if q.PerImage("i2t_mean_rank") != nil {
		t.Error("a mean rank has shares")
	}
}
