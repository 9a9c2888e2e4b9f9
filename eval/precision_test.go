package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestPrecision compares with the definition on random scores with ties: images of one id and
// several texts an image.
func TestPrecision(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ids, textImage := make([]int, 30), make([]int, 80)
	for i := range ids {
		ids[i] = i / 2 % 11
	}
	for j := range textImage {
		textImage[j] = j % 30
	}
	c := check.Get(NewCorrespondence(ids, textImage))(t)
	scores := make([]float32, 30*80)
	for i := range scores {
		scores[i] = float32(r.IntN(12))
	}
	// at is the precision of a query with the scores s and right answers.
	at := func(s []float32, right []bool, k int) float64 {
		order := make([]int, len(s))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(a, b int) bool {
			if s[order[a]] != s[order[b]] {
				return s[order[a]] > s[order[b]]
			}
			return !right[order[a]] && right[order[b]]
		})
		n := 0.
		for _, i := range order[:k] {
			if right[i] {
				n++
			}
		}
		return 100 * n / float64(k)
	}
	var want [4]float64
	for i := range 30 {
		right := make([]bool, 80)
		for j := range right {
			right[j] = ids[i] == ids[textImage[j]]
		}
		want[0] += at(scores[i*80:][:80], right, 5) / 30
		want[1] += at(scores[i*80:][:80], right, 10) / 30
	}
	for j := range 80 {
		column, right := make([]float32, 30), make([]bool, 30)
		for i := range 30 {
			column[i], right[i] = scores[i*80+j], ids[i] == ids[textImage[j]]
		}
		want[2] += at(column, right, 5) / 80
		want[3] += at(column, right, 10) / 80
	}
	for _, chunk := range []int{1, 7, 30} {
		p := check.Get(MeasurePrecision(c, chunk, Matrix(scores, 80)))(t)
		for i, v := range p.Values() {
			if !(math.Abs(v.Value-want[i]) <= 1e-9) {
				t.Errorf("%s %v, want %v", v.Name, v.Value, want[i])
			}
		}
	}
	if !c.Several() {
		t.Error("images of one id have several right answers")
	}
}

// TestPrecisionVector is worked out by hand: two images with three texts each, of which one is
// ahead of a wrong one.
func TestPrecisionVector(t *testing.T) {
	c := check.Get(NewCorrespondence([]int{0, 1}, []int{0, 0, 0, 1, 1, 1}))(t)
	p := check.Get(MeasurePrecision(c, 2, Matrix([]float32{9, 8, 1, 7, 6, 5, 0, 0, 0, 3, 2, 1}, 6)))(t)
	// Image 0: right, right, wrong, wrong, wrong, right. Image 1: right three times. Texts: one of two images is right.
	want := Precision{I2T: PrecisionAt{(40 + 60) / 2., (30 + 30) / 2.}, T2I: PrecisionAt{20, 10}, I2TChance: 50, T2IChance: 50}
	got := []float64{p.I2T.P5, p.I2T.P10, p.T2I.P5, p.T2I.P10, p.I2TChance, p.T2IChance}
	if !slices.EqualFunc(got, []float64{want.I2T.P5, want.I2T.P10, want.T2I.P5, want.T2I.P10, 50, 50},
		func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		t.Errorf("%+v, want %+v", p, want)
	}
	one, err := NewCorrespondence([]int{0, 1}, []int{0, 1})
	if err != nil || one.Several() {
		t.Errorf("one text an image are not several right answers (%v)", err)
	}
}
