package align

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/rng"
	"gonum.org/v1/gonum/mat"
)

// Wasserstein is Wasserstein-Procrustes (Grave, Joulin and Berthet 2019): the orthogonal map
// between two sets of rows of which no pair is known. It alternates between the transport
// plan of the rows as they are mapped and the orthogonal map of the plan,
//
//	P = plan(X R Y^T / eps),  R = U V^T of X^T P Y
//
// while eps falls. The first plan compares profiles: the similarities of a row with all
// others of its own side, sorted, which no rotation changes. Restarts add noise
// to it, and the map whose plan has the largest <P, X R Y^T> is kept.
//
// It works where one set is nearly a rotation of the other: copies of one space, versions of one
// encoder, embeddings of one kind of text in two languages. Features of unlike encoders are
// not: for these it finds a map that fits its own matching and is at chance, which Matching
// shows.
type Wasserstein struct {
	Prepare `toml:"-"`
	// principal components of each side; 0: 64, or fewer where there are fewer
	Components int `toml:"components" fixed:"run" max:"65536"`
	// rows of each side that are matched, evenly spaced over all
	Rows int `toml:"rows" fixed:"run" max:"65536"`
	// starts with noise beside the one without, drawn by run.seed
	//
	// Here 0 is 4, and below 0 there are none.
	Restarts int    `toml:"restarts" fixed:"run" max:"65536"`
	Seed     uint64 `toml:"-"`
}

// Matching says how a fit without pairs went.
type Matching struct {
	// Objective is the mean cosine of matched rows, at most 1. Rows of unlike spaces reach 0.6.
	Objective float64
	// Agreement is the share of images that the other starts match as the best one does, mean
	// over these starts. A good map is found again. Where each start finds another one and the
	// objective is far from 1, distrust all. 0 without restarts.
	Agreement float64
	Texts     []int32 // per matched image the text with the largest mass
	Images    []int32 // rows that were matched, of both sides
	TextRows  []int32
}

// Noise of starts, as a share of the spread of the first similarities.
const startNoise = .2

// wassersteinStream names the random numbers of the starts.
const wassersteinStream = "align/wasserstein"

// annealing are the weights of the entropy, for cosines.
var annealing = []float64{.5, .3, .2, .15, .1, .07, .05, .035, .025, .02, .015, .01, .01, .01}

// Defaults implements section.Defaulter.
func (o *Wasserstein) Defaults() { *o = Wasserstein{Rows: 500, Restarts: 4} }

// Check implements section.Checked.
func (o *Wasserstein) Check(k *section.Checker) {
	k.NotNegative("components", "restarts")
	k.Require("rows", o.Rows >= 2, "must be >= 2")
}

var _ Method = Wasserstein{}

// Fit implements Method by FitUnpaired: it reads the rows of p and not how they are paired. The
// map is a *Linear.
func (o Wasserstein) Fit(e *compute.Engine, p Pairs) (Map, error) {
	m, _, err := o.FitUnpaired(e, p.Image, p.Text)
	return m, err
}

// FitUnpaired fits the map to rows of both sides, whose order means nothing.
func (o Wasserstein) FitUnpaired(e *compute.Engine, images, texts Rows) (*Linear, *Matching, error) {
	if o.Components < 0 || o.Rows < 0 {
		return nil, nil, fmt.Errorf("align: Wasserstein.Components and Rows must be >= 0 (got %d and %d)", o.Components,
			o.Rows)
	}
	if o.Rows == 0 {
		o.Rows = 500
	}
	if o.Rows < 2 {
		return nil, nil, fmt.Errorf("align: Wasserstein.Rows must be at least 2, or 0 for 500 (got %d)", o.Rows)
	}
	if o.Restarts == 0 {
		o.Restarts = 4
	}
	if o.Components == 0 {
		o.Components = 64
	}
	var sides [2]*cloud
	m := &Moments{Prepare: o.Prepare}
	for s, r := range []Rows{images, texts} {
		var err error
		if sides[s], err = o.cloud(e, Side(s), r, m); err != nil {
			return nil, nil, err
		}
	}
	k := min(sides[0].width, sides[1].width)
	for _, c := range sides {
		c.cut(k)
	}
	x, y := sides[Image], sides[Text]
	first := profileSimilarity(e, x, y)
	random := rng.New(o.Seed, wassersteinStream, 0)
	var best *mat.Dense
	found := &Matching{Objective: math.Inf(-1), Images: x.index, TextRows: y.index}
	var matches [][]int32
	bestStart := 0
	for start := range 1 + max(0, o.Restarts) {
		rotation, objective, nearest, err := o.alternate(e, x, y, noisy(first, start, random))
		if err != nil {
			return nil, nil, err
		}
		matches = append(matches, nearest)
		if objective > found.Objective {
			bestStart = start
			best, found.Objective, found.Texts = rotation, objective, nearest
		}
	}
	for start, other := range matches {
		for i, j := range other {
			if start != bestStart && j == found.Texts[i] {
				found.Agreement += 1 / float64(len(other)*(len(matches)-1))
			}
		}
	}
	var image mat.Dense
	image.Mul(x.basis, best)
	return newLinear(m, &image, y.basis), found, nil
}

// noisy returns similarities with noise, none for start 0.
func noisy(s []float64, start int, random *rand.Rand) []float64 {
	out := append([]float64(nil), s...)
	if start > 0 {
		for i := range out {
			out[i] += startNoise * random.NormFloat64()
		}
	}
	return out
}

// alternate returns the map (K, K) that a first plan leads to, its objective, and of each image
// the text with the largest mass.
func (o Wasserstein) alternate(e *compute.Engine, x, y *cloud, first []float64) (*mat.Dense, float64, []int32, error) {
	n, _ := x.rows.Dims()
	t, _ := y.rows.Dims()
	plan, err := NewPlan(e, first, n, t, PlanOptions{Epsilon: .02, Iterations: 100, Tolerance: 1e-3})
	if err != nil {
		return nil, 0, nil, err
	}
	mass := masses(plan)
	var rotation *mat.Dense
	var objective float64
	for _, eps := range annealing {
		var half, cross, mapped, scores mat.Dense
		half.Mul(mat.NewDense(n, t, mass), y.rows)
		cross.Mul(x.rows.T(), &half)
		if rotation, _, err = orthogonal(&cross, false); err != nil {
			return nil, 0, nil, err
		}
		mapped.Mul(x.rows, rotation)
		scores.Mul(&mapped, y.rows.T())
		if plan, err = NewPlan(e, scores.RawMatrix().Data, n, t,
			PlanOptions{Epsilon: eps, Iterations: 50, Tolerance: 1e-3}); err != nil {
			return nil, 0, nil, err
		}
		mass = masses(plan)
		objective = 0
		for i, v := range mass {
			objective += v * plan.S[i]
		}
	}
	nearest := make([]int32, n)
	for i := range nearest {
		row := mass[i*t:][:t]
		for j, v := range row {
			if v > row[nearest[i]] {
				nearest[i] = int32(j)
			}
		}
	}
	return rotation, objective, nearest, nil
}
