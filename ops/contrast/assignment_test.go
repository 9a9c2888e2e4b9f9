package contrast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestSamplePairsDistribution draws many times: the first is drawn by its weight, the second by the weights of those that are
// left, as torch.multinomial draws two without replacement.
func TestSamplePairsDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	const draws = 20000
	logits, noise := make([]float32, 16), make([]float32, 16)
	copy(logits, []float32{300, 2, 1, 0}) // the diagonal takes part in no draw
	in := []optest.Input{optest.In("logits", []int{4, 4}, logits), optest.In("noise", []int{4, 4}, noise)}
	g, ns := optest.Nodes(in)
	out := SamplePairs(ns[0], ns[1], nil)
	m := optest.Machine(t, g, ns, in, out)
	count := map[[2]int32]float64{}
	for range draws {
		gumbel(r, noise)
		check.OK(t, m.RunAll())
		a := check.Get(m.Value(out))(t)
		count[[2]int32{a.I32[0], a.I32[4]}]++
	}
	w := []float64{0, math.Exp(2), math.E, 1}
	all := w[1] + w[2] + w[3]
	for i := int32(1); i < 4; i++ {
		for j := int32(1); j < 4; j++ {
			want := w[i] / all * w[j] / (all - w[i])
			if i == j {
				want = 0
			}
			if got := count[[2]int32{i, j}] / draws; !(math.Abs(got-want) <= 5*math.Sqrt(want*(1-want)/draws)) {
				t.Errorf("P(%d,%d) = %.4f, want %.4f", i, j, got, want)
			}
		}
	}
}

// TestSamplePairsTraps: rows of one id are no negatives, and a row with fewer than two has itself for what it lacks.
func TestSamplePairsTraps(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		logits []float32
		ids    []int32
		want   []int32
	}{
		{"by the logits", []float32{9, 3, 2, 1, 9, 9, 1, 2, 0, 9, 9, 1, 1, 2, 3, 9}, []int32{0, 1, 2, 3}, []int32{1, 0, 1, 2, 2, 3, 3, 1}},
		{"infinity: even weights", []float32{9, inf, 2, 1, 9, 9, 1, 2, 0, 9, 9, 1, 1, 2, 3, 9}, []int32{0, 1, 2, 3}, []int32{1, 0, 1, 2, 2, 3, 3, 1}},
		{"one negative left", make([]float32, 16), []int32{5, 5, 5, 1}, []int32{3, 3, 3, 0, 0, 1, 2, 1}},
		{"none", make([]float32, 16), []int32{5, 5, 5, 5}, []int32{0, 1, 2, 3, 0, 1, 2, 3}},
	} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return SamplePairs(ns[0], ns[1], ns[2]) },
			optest.In("logits", []int{4, 4}, c.logits), optest.In("noise", []int{4, 4}, make([]float32, 16)), optest.I32s("ids", c.ids, 4))
		if !slices.Equal(got.I32, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got.I32, c.want)
		}
	}
}

// TestAssignedPictures: of five texts the own picture is first, second, none of two, and none of what there is.
func TestAssignedPictures(t *testing.T) {
	sampled, answers := optest.I32s("sampled", []int32{2, 0, 4, 1, 4, 3, 4, 0, 3, 4}, 10), optest.I32s("answers", []int32{AssignedFirst, AssignedSecond, AssignedNone, AssignedNone, AssignedFirst}, 5)
	for picture, want := range [][]int32{{0, 0, 4, 1, 4}, {2, 1, 0, 3, 4}} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return AssignedPictures(ns[0], ns[1], picture) }, sampled, answers)
		if !slices.Equal(got.I32, want) {
			t.Errorf("picture %d: got %v, want %v", picture, got.I32, want)
		}
	}
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return AssignmentLabels(ns[0], ns[1]) }, sampled, answers)
	if want := []int32{0, 1, 2, -100, -100}; !slices.Equal(got.I32, want) {
		t.Errorf("labels: got %v, want %v", got.I32, want)
	}
}

func TestAssignmentErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 4))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "one", 1, 1), optest.F32s(r, "wide", 3, 4), optest.F32s(r, "x", 3, 3), optest.F32s(r, "noise", 3, 2), optest.I32s("ids", make([]int32, 2), 2)})
	optest.BuildError(t, "one row", "two rows or more", func() { SamplePairs(ns[0], ns[0], nil) })
	optest.BuildError(t, "columns", "want logits (B, B)", func() { SamplePairs(ns[1], ns[2], nil) })
	optest.BuildError(t, "noise", "noise must have shape (3, 3)", func() { SamplePairs(ns[2], ns[3], nil) })
	optest.BuildError(t, "ids", "row ids must have shape (3)", func() { SamplePairs(ns[2], ns[2], ns[4]) })
	optest.BuildError(t, "pictures", "want samples (2B) and answers (B)", func() { AssignedPictures(ns[4], ns[4], 0) })
	optest.BuildError(t, "labels", "want samples (2B) and answers (B)", func() { AssignmentLabels(ns[4], ns[4]) })
}
