package scoring_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

func engine(t testing.TB) *compute.Engine {
	t.Helper()
	e := check.Get(compute.New(compute.Options{Backend: "builtin", Threads: 2}))(t)
	t.Cleanup(e.Close)
	return e
}

// rows returns n features of a space.
func rows(r *rand.Rand, s space.Space, n int) []float32 {
	x := make([]float32, n*s.Dim)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := 0; i < len(x) && !s.Euclid; i += s.SphereDim() {
		sphere := x[i : i+s.SphereDim()]
		var sq float64
		for _, v := range sphere {
			sq += float64(v) * float64(v)
		}
		for k := range sphere {
			sphere[k] /= float32(math.Sqrt(sq))
		}
	}
	return x
}

// naive is the definition of a term for one pair.
func naive(s space.Space, t scoring.Term, x, y []float32) float64 {
	var dot, sq, angles float64
	for i := range x {
		dot += float64(x[i]) * float64(y[i])
		sq += (float64(x[i]) - float64(y[i])) * (float64(x[i]) - float64(y[i]))
	}
	switch t.Kind {
	case scoring.L2:
		return -math.Sqrt(sq)
	case scoring.Angle:
		for i := 0; i < len(x); i += s.SphereDim() {
			var c float64
			for k := i; k < i+s.SphereDim(); k++ {
				c += float64(x[k]) * float64(y[k])
			}
			a := math.Acos(min(max(c, -1+1e-6), 1-1e-6))
			angles += a * a
		}
		return -math.Sqrt(angles)
	case scoring.GSSF:
		if t.Metric == nil || t.Metric.Form == "cosine" {
			return dot
		}
		if t.Metric.Form == "mlp" {
			return dot + naiveNet(t.Metric.Net, x, y)
		}
		blocks := map[string]int{"diag": len(x), "block_diag": t.Metric.Blocks, "dense": 1}[t.Metric.Form]
		d := len(x) / blocks
		var sum float64
		for b := range blocks {
			for i := range d {
				for j := range d {
					sum += float64(x[b*d+i]) * float64(t.Metric.Weight[(b*d+i)*d+j]) * float64(y[b*d+j])
				}
			}
		}
		return sum
	}
	return dot
}

// naiveNet is the definition of a network for one pair.
func naiveNet(n *scoring.Network, x, y []float32) (sum float64) {
	c := len(x)
	for h, v := range n.Out {
		p := float64(n.Bias[h])
		for i := range x {
			d := float64(x[i]) - float64(y[i])
			p += float64(n.Product[h*c+i])*float64(x[i])*float64(y[i]) + float64(n.Difference[h*c+i])*d*d
		}
		sum += float64(v) * max(p, 0)
	}
	return sum
}

func TestRowsAgainstDefinition(t *testing.T) {
	e, r := engine(t), rand.New(rand.NewPCG(1, 2))
	for _, space := range []space.Space{{Dim: 12, Spheres: 1}, {Dim: 12, Spheres: 4}, {Dim: 12, Spheres: 1, Euclid: true}} {
		weights := func(n int) []float32 {
			w := make([]float32, n)
			for i := range w {
				w[i] = float32(r.NormFloat64())
			}
			return w
		}
		terms := []scoring.Term{
			{Kind: scoring.Inner, Weight: 1}, {Kind: scoring.L2, Weight: 1}, {Kind: scoring.GSSF, Weight: 2},
			{Kind: scoring.GSSF, Weight: 1, Metric: &scoring.Metric{Form: "diag", Weight: weights(12)}},
			{Kind: scoring.GSSF, Weight: 1, Metric: &scoring.Metric{Form: "block_diag", Blocks: 4, Weight: weights(36)}},
			{Kind: scoring.GSSF, Weight: 1, Metric: &scoring.Metric{Form: "dense", Weight: weights(144)}},
			{Kind: scoring.GSSF, Weight: 0.5, Metric: &scoring.Metric{Form: "mlp", Net: &scoring.Network{Product: weights(60), Difference: weights(60), Bias: weights(5), Out: weights(5)}}},
		}
		if !space.Euclid {
			terms = append(terms, scoring.Term{Kind: scoring.Cosine, Weight: 0.3}, scoring.Term{Kind: scoring.Angle, Weight: 1})
		}
		scores := []scoring.Score{{Space: space, Terms: terms}} // all at once
		for _, term := range terms {
			scores = append(scores, scoring.Score{Space: space, Terms: []scoring.Term{term}})
		}
		const n, m = 7, 300 // more texts than a block
		x, y := rows(r, space, n), rows(r, space, m)
		copy(y, x[:12]) // an equal pair
		for i, v := range x[12:24] {
			y[12+i] = -v // and an opposite one
		}
		for _, s := range scores {
			got := make([]float32, n*m)
			check.OK(t, s.Rows(e, x, n, y, m, got))
			for i := range n {
				for j := range m {
					var want float64
					for _, term := range s.Terms {
						want += float64(term.Weight) * naive(space, term, x[i*12:][:12], y[j*12:][:12])
					}
					if d := math.Abs(float64(got[i*m+j]) - want); d > 1e-4 {
						t.Fatalf("%v in %+v, pair %d, %d: got %v, want %v", s, space, i, j, got[i*m+j], want)
					}
				}
			}
		}
	}
}

// TestObliqueVectors was worked by hand: two unit columns of three channels.
func TestObliqueVectors(t *testing.T) {
	x, y := []float32{1. / 3, 2. / 3, 2. / 3, 0, .6, .8}, []float32{2. / 3, 1. / 3, 2. / 3, .8, .6, 0}
	space, e := space.Space{Dim: 6, Spheres: 2}, engine(t)
	for kind, want := range map[scoring.Kind]float64{scoring.Cosine: 1.248889, scoring.Angle: -1.293267} {
		var got [1]float32
		if err := (scoring.Score{Space: space, Terms: []scoring.Term{{Kind: kind, Weight: 1}}}).Rows(e, x, 1, y, 1, got[:]); err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(float64(got[0])-want) <= 1e-6) {
			t.Errorf("%s: got %v, want %v", kind, got[0], want)
		}
	}
}

// TestBlockDiagonalVector was worked by hand: two blocks of two channels.
func TestBlockDiagonalVector(t *testing.T) {
	s := scoring.Score{Space: space.Space{Dim: 4, Spheres: 1, Euclid: true}, Terms: []scoring.Term{{Kind: scoring.GSSF, Weight: 1,
		Metric: &scoring.Metric{Form: "block_diag", Blocks: 2, Weight: []float32{1, .5, 0, 2, 1, 0, -1, 3}}}}}
	var folded [4]float32
	if err := s.FoldImages(folded[:], []float32{1, 2, 3, 4}, 1); err != nil || folded != [4]float32{1, 4.5, -1, 12} {
		t.Errorf("folded %v, %v", folded, err)
	}
	var got [1]float32
	if err := s.Rows(engine(t), []float32{1, 2, 3, 4}, 1, []float32{1, 0, 2, 1}, 1, got[:]); err != nil || got[0] != 11 {
		t.Errorf("score %v, %v", got, err)
	}
}

// TestIdentityIsTheCosine: bit for bit, for every form.
func TestIdentityIsTheCosine(t *testing.T) {
	e, r, space := engine(t), rand.New(rand.NewPCG(3, 4)), space.Space{Dim: 64, Spheres: 4}
	const n, m = 9, 33
	x, y := rows(r, space, n), rows(r, space, m)
	want, got := make([]float32, n*m), make([]float32, n*m)
	if err := (scoring.Score{Space: space, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}).Rows(e, x, n, y, m, want); err != nil {
		t.Fatal(err)
	}
	for form, size := range map[string]int{"cosine": 0, "diag": 1, "block_diag": 16, "dense": 64} {
		metric := &scoring.Metric{Form: form, Blocks: 4}
		if size > 0 {
			metric.Weight = make([]float32, 64*size)
			for i := range 64 {
				metric.Weight[i*size+i%size] = 1
			}
		}
		if err := (scoring.Score{Space: space, Terms: []scoring.Term{{Kind: scoring.GSSF, Weight: 1, Metric: metric}}}).Rows(e, x, n, y, m, got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s starts with other scores than the cosine", form)
		}
	}
}

func TestHostAndString(t *testing.T) {
	space := space.Space{Dim: 8, Spheres: 2}
	s := scoring.Score{Space: space, Terms: []scoring.Term{{Kind: scoring.Geodesic, Weight: 0.5}, {Kind: scoring.GSSF, Weight: 1}, {Kind: scoring.L2, Weight: 0.25}}}
	if got := s.Host().String(); got != "gssf + 0.25 l2" || s.Host().Folds() || len(s.Terms) != 3 {
		t.Errorf("host %q", got)
	}
	s.Terms = s.Terms[:1]
	if got := s.Host().String(); got != "cosine" || !s.Host().Folds() || s.Folds() {
		t.Errorf("of the geodesic alone %q", got)
	}
	s.Space.Euclid = true
	if got := s.Host().String(); got != "l2" {
		t.Errorf("in a Euclidean space %q", got)
	}
}

func TestErrors(t *testing.T) {
	e, one := engine(t), space.Space{Dim: 4, Spheres: 1}
	gssf := func(m scoring.Metric) []scoring.Term {
		return []scoring.Term{{Kind: scoring.GSSF, Weight: 1, Metric: &m}}
	}
	for _, x := range []struct {
		space space.Space
		terms []scoring.Term
		want  string
	}{
		{space.Space{}, gssf(scoring.Metric{Form: "cosine"}), "a space of 0 channels"},
		{one, nil, "without terms"},
		{one, []scoring.Term{{Kind: scoring.Inner, Weight: -1}}, "inner has weight -1"},
		{one, []scoring.Term{{Kind: scoring.Inner, Weight: float32(math.NaN())}}, "inner has weight NaN"},
		{space.Space{Dim: 4, Spheres: 1, Euclid: true}, []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}, "cosine needs unit vectors"},
		{space.Space{Dim: 4, Spheres: 1, Euclid: true}, []scoring.Term{{Kind: scoring.Angle, Weight: 1}}, "angle needs unit vectors"},
		{one, []scoring.Term{{Kind: scoring.Geodesic, Weight: 1}}, "use Score.Host"},
		{one, []scoring.Term{{Kind: "hyperbolic", Weight: 1}}, `no score "hyperbolic"`},
		{one, gssf(scoring.Metric{Form: "band"}), `no metric "band"`},
		{one, gssf(scoring.Metric{Form: "block_diag", Blocks: 3}), "3 blocks do not divide 4 channels"},
		{one, gssf(scoring.Metric{Form: "block_diag"}), "0 blocks do not divide 4 channels"},
		{one, gssf(scoring.Metric{Form: "mlp"}), "has no network"},
		{one, gssf(scoring.Metric{Form: "mlp", Net: &scoring.Network{Out: make([]float32, 2)}}), "has 0, 0, 0 and 2 weights: want 8, 8, 2 and 2"},
		{one, gssf(scoring.Metric{Form: "diag", Weight: make([]float32, 3)}), "has 3 weights: want 4"},
	} {
		err := scoring.Score{Space: x.space, Terms: x.terms}.Rows(e, make([]float32, 4), 1, make([]float32, 4), 1, make([]float32, 1))
		check.Error(t, err, x.want)
	}
	s := scoring.Score{Space: one, Terms: []scoring.Term{{Kind: scoring.Inner, Weight: 1}}}
	if err := s.Rows(e, make([]float32, 3), 1, make([]float32, 4), 1, make([]float32, 1)); err == nil {
		t.Error("an image of 3 channels was scored")
	}
	if err := s.FoldImages(make([]float32, 4), make([]float32, 8), 2); err == nil {
		t.Error("two images were folded into one")
	}
}

func ExampleScore_Rows() {
	e, err := compute.New(compute.Options{Backend: "plain", Threads: 1})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	s := scoring.Score{
		Space: space.Space{Dim: 2, Spheres: 1},
		Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}, {Kind: scoring.L2, Weight: 0.5}},
	}
	images, texts := []float32{1, 0, 0, 1}, []float32{1, 0, -1, 0}
	scores := make([]float32, 4)
	if err := s.Rows(e, images, 2, texts, 2, scores); err != nil {
		panic(err)
	}
	fmt.Printf("%v %.2f\n", s, scores)
	// Output: cosine + 0.5 l2 [1.00 -2.00 -0.71 -0.71]
}
