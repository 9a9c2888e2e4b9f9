package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/geoalign/geoalign/internal/check"
)

// draw runs HardNegatives on given similarities and noise.
func draw(t testing.TB, logits []float32, b int, noise []float32, ids []int32, floor float64) (texts, images []int32) {
	t.Helper()
	n := newBench(t)
	// Both directions see one matrix; wider logits hold queue columns behind it.
	s := n.floats("logits", logits, b, len(logits)/b)
	g := n.floats("noise", noise, b, b)
	var id *gorgonia.Node
	if ids != nil {
		id = n.ints("ids", ids...)
	}
	x, y := HardNegatives(Contrast{I2T: s, T2I: s}, g, g, id, floor)
	out := n.run(x, y)
	return out[0].I32, out[1].I32
}

// gumbels returns n standard Gumbel values.
func gumbels(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(-math.Log(r.ExpFloat64()))
	}
	return out
}

// TestSamplingProbabilities by hand: logits [3,2,1] of row 0 give [0, .731059,
// .268941]. 20,000 draws: five standard
// errors are .016.
func TestSamplingProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 4))
	n := newBench(t)
	noise := make([]float32, 9)
	s := n.floats("logits", []float32{3, 2, 1, 0, 9, 0, 0, 0, 9}, 3, 3)
	g := n.floats("noise", noise, 3, 3)
	x, _ := HardNegatives(Contrast{I2T: s, T2I: s}, g, g, nil, 0)
	m := n.compile(x)
	const draws = 20000
	var count [3]int
	for range draws {
		copy(noise, gumbels(r, 9))
		check.OK(t, m.RunAll())
		a := check.Get(m.Value(x))(t)
		count[a.I32[0]]++
	}
	for j, want := range []float64{0, .731059, .268941} {
		if got := float64(count[j]) / draws; !(math.Abs(got-want) <= .016) {
			t.Errorf("text %d is drawn with probability %v, want %v", j, got, want)
		}
	}
}

// TestHardNegativesAgainstOracle repeats the sampling loop by loop over random batches
// with and without ids and queue columns.
func TestHardNegativesAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for trial := range 60 {
		b, q := 2+r.IntN(6), r.IntN(4)
		logits := make([]float32, b*(b+q))
		for i := range logits {
			logits[i] = float32(5 * r.NormFloat64())
		}
		noise := gumbels(r, b*b)
		var ids []int32
		if trial%2 == 1 {
			for range b {
				ids = append(ids, int32(r.IntN(3)))
			}
		}
		floor := []float64{0, 1e-4}[trial/2%2]
		texts, images := draw(t, logits, b, noise, ids, floor)
		if !slices.Equal(texts, images) {
			t.Fatal("one matrix and one noise give two samples")
		}
		for i := range b {
			row := make([]float64, b)
			for j := range row {
				row[j] = float64(logits[i*(b+q)+j])
			}
			p, _ := softmax(row)
			want, best := i, math.Inf(-1)
			for j := range b {
				if j == i || ids != nil && ids[j] == ids[i] {
					continue
				}
				if v := math.Log(p[j]+floor) + float64(noise[i*b+j]); v > best {
					want, best = j, v
				}
			}
			if int(texts[i]) != want {
				t.Errorf("trial %d, ids %v: row %d drew %d, want %d", trial, ids, i, texts[i], want)
			}
		}
	}
}

// TestNegativesUnderUnderflow: logits of +-1e4, where the off-diagonal softmax is 0. Equal
// logits are equally likely, with a floor and without.
func TestNegativesUnderUnderflow(t *testing.T) {
	const b = 4
	logits := make([]float32, b*b)
	for i := range logits {
		logits[i] = -1e4
	}
	for i := range b {
		logits[i*b+i] = 1e4
	}
	r := rand.New(rand.NewPCG(2, 2))
	var count [b]int
	for n := range 300 {
		texts, _ := draw(t, logits, b, gumbels(r, b*b), nil, []float64{0, 1e-4}[n%2])
		for i, j := range texts {
			if int(j) == i {
				t.Fatalf("row %d drew itself", i)
			}
		}
		count[texts[0]]++
	}
	for j := 1; j < b; j++ {
		if count[j] < 60 || count[j] > 140 { // five deviations of 8.2 around 100
			t.Errorf("negative %d was drawn %d times of 300, want about 100", j, count[j])
		}
	}
}

// TestBatchOfTwo: each is the other's negative, whatever the logits.
func TestBatchOfTwo(t *testing.T) {
	for _, logits := range [][]float32{{1, 2, 3, 4}, {1e4, -1e4, -1e4, 1e4}, {0, 0, 0, 0}} {
		texts, images := draw(t, logits, 2, []float32{.3, -3, 2, 5}, nil, 0)
		if !slices.Equal(texts, []int32{1, 0}) || !slices.Equal(images, []int32{1, 0}) {
			t.Errorf("logits %v: texts %v, images %v", logits, texts, images)
		}
	}
}

// TestMatchingWithoutNegatives: with one image id in the whole batch there is no
// negative; those rows are ignored and the loss is that of the pairs.
func TestMatchingWithoutNegatives(t *testing.T) {
	const b = 3
	for _, c := range []struct {
		ids    []int32
		labels []int32
	}{
		{[]int32{4, 4, 4}, []int32{1, 1, 1, -100, -100, -100, -100, -100, -100}},
		{[]int32{4, 4, 5}, []int32{1, 1, 1, 0, 0, 0, 0, 0, 0}},
	} {
		n := newBench(t)
		r := rand.New(rand.NewPCG(3, 3))
		s := n.floats("logits", []float32{3, 2, 1, 2, 3, 1, 1, 2, 3}, b, b)
		g := n.floats("noise", gumbels(r, b*b), b, b)
		texts, images := HardNegatives(Contrast{I2T: s, T2I: s}, g, g, n.ints("ids", c.ids...), 0)
		labels := MatchingLabels(n.ints("ones", 1, 1, 1), images, texts)
		values := make([]float32, 3*b*2)
		for i := range values {
			values[i] = float32(r.NormFloat64())
		}
		logits := n.floats("match logits", values, 3*b, 2)
		loss := Matching(logits, labels)
		if got := n.run(labels)[0].I32; !slices.Equal(got, c.labels) {
			t.Errorf("ids %v: labels %v, want %v", c.ids, got, c.labels)
		}
		var want, rows float64
		for i, l := range c.labels {
			if l >= 0 {
				_, log := softmax([]float64{float64(values[2*i]), float64(values[2*i+1])})
				want, rows = want-log[l], rows+1
			}
		}
		got, grads := n.lossAndGrads(loss, logits)
		near(t, "loss", got, want/rows, 1e-6)
		for i, l := range c.labels {
			if zero := grads[0][2*i] == 0; zero != (l < 0) {
				t.Errorf("ids %v: row %d with label %d has gradient %v", c.ids, i, l, grads[0][2*i])
			}
		}
	}
}

// TestMatchingLabelsOrder: the second block follows the images, the third the texts.
func TestMatchingLabelsOrder(t *testing.T) {
	n := newBench(t)
	// Image 1 has no negative image for text 1; text 0 none for image 0.
	got := n.run(MatchingLabels(n.ints("ones", 1, 1, 1), n.ints("images", 1, 1, 0), n.ints("texts", 0, 2, 1)))[0].I32
	if want := []int32{1, 1, 1, 0, -100, 0, -100, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}
