package main

import (
	"math"
	"math/rand/v2"
	"sync"
)

// classes is the number of classes of a pool: many more than bottom centres, as a queue
// holds many more things than a graph has centres.
const classes = 2000

// spread is the standard deviation of a member's channels around its class's, which are
// of deviation 1: two members of a class have a cosine of 1/(1+spread^2), 0.74.
const spread = 0.6

// mixture is a distribution of unit vectors on a manifold of classes: a class mean of
// N(0, 1) channels, plus spread times N(0, 1) noise, on the unit sphere. Classes come in
// groups of 20 that share half of their mean's variance, so that there is something for
// an upper layer to find and neighbours of a centre lie nearer than the rest.
type mixture struct {
	channels int
	means    []float32 // (classes, C)
}

func newMixture(channels int, seed uint64) *mixture {
	m := &mixture{channels: channels, means: make([]float32, classes*channels)}
	r := rand.New(rand.NewPCG(seed, 1))
	group := make([]float64, channels)
	for k := range classes {
		if k%20 == 0 {
			for i := range group {
				group[i] = r.NormFloat64()
			}
		}
		for i := range group {
			m.means[k*channels+i] = float32(math.Sqrt(.5) * (group[i] + r.NormFloat64()))
		}
	}
	return m
}

// rows returns n unit rows (n, C). Blocks of rows have a generator each, so that the
// rows do not depend on how many threads make them.
func (m *mixture) rows(n int, seed uint64) []float32 {
	const block = 4096
	x := make([]float32, n*m.channels)
	var wait sync.WaitGroup
	for at := 0; at < n; at += block {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(at)))
			for j := at; j < min(at+block, n); j++ {
				k, row := r.IntN(classes), x[j*m.channels:][:m.channels]
				for i := range row {
					row[i] = m.means[k*m.channels+i] + spread*float32(r.NormFloat64())
				}
				normalise(row)
			}
		})
	}
	wait.Wait()
	return x
}

// beside returns a unit row for each row of x whose cosine with it is about aligned: the
// features of another modality that is aligned that well.
func beside(x []float32, channels int, aligned float64, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 2))
	y := make([]float32, len(x))
	noise := math.Sqrt((1/(aligned*aligned) - 1) / float64(channels))
	for at := 0; at < len(x); at += channels {
		row := y[at:][:channels]
		for i := range row {
			row[i] = x[at+i] + float32(noise*r.NormFloat64())
		}
		normalise(row)
	}
	return y
}

func normalise(x []float32) {
	n := math.Sqrt(dot(x, x))
	for i := range x {
		x[i] = float32(float64(x[i]) / n)
	}
}

func dot(x, y []float32) (s float64) {
	for i := range x {
		s += float64(x[i]) * float64(y[i])
	}
	return s
}
