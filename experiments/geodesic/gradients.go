package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"gonum.org/v1/gonum/mat"
)

// directions looks at where the gradients of a contrast point. Keys are rows of the
// mixture, in a pool of others; each feature is a noisy copy of its own key.
type directions struct {
	engine                *compute.Engine
	channels, rows, batch int
	pool, clusters        int
	aligned, temperature  float64
}

// direction is what the gradients of one mode are like.
type direction struct {
	mode     string
	positive float64 // mean cosine between -dL/dF_i and the direction to the positive, both tangents at F_i
	share    float64 // of the rows where that cosine is above 0
	centre   float64 // mean size of the cosine between dL/dF_i and the centre nearest to F_i
	ofBatch  float64 // effective rank of the gradients (B, C) of a batch, mean
	ofSet    float64 // effective rank of the gradients of all rows
	norm     float64 // of the gradients of a batch, mean
}

func (d directions) run(w io.Writer, out string) error {
	rows := d.rows / d.batch * d.batch
	manifold := newMixture(d.channels, 1)
	queue, keys := manifold.rows(d.pool, 2), manifold.rows(rows, 3)
	features := beside(keys, d.channels, d.aligned, 4)
	graph, err := d.build(queue)
	if err != nil {
		return err
	}
	owner, reach := make([]int32, rows), make([]float32, rows)
	graph.Attach(d.engine, features, owner, reach)
	keyOwner := make([]int32, rows)
	graph.Attach(d.engine, keys, keyOwner, reach)
	used, together := map[int32]bool{}, 0
	for i, o := range owner {
		used[o] = true
		if o == keyOwner[i] {
			together++
		}
	}
	fmt.Fprintf(w, "%d rows in batches of %d whose cosine with their positive is %.2f; pool of %d entries, %d bottom centres, %d of them nearest to a row; %.0f %% of the rows share a cluster with their positive; C = %d, temperature %g.\n\n",
		rows, d.batch, meanCosine(features, keys, d.channels), d.pool, graph.Used, len(used),
		100*float64(together)/float64(rows), d.channels, d.temperature)
	var list []direction
	for _, mode := range modes {
		grad, err := d.gradients(mode, queue, graph, features, keys)
		if err != nil {
			return err
		}
		list = append(list, d.describe(mode, grad, features, keys, owner, graph.Centres))
	}
	printDirections(w, list)
	if out == "" {
		return nil
	}
	return drawDirections(out, list)
}

// build builds a graph of two layers over the pool.
func (d directions) build(queue []float32) (*geodesic.Graph, error) {
	o := config.Default().Objective.Geodesic
	g, err := geodesic.New(d.pool, d.channels, geodesic.Options{
		Layers: []int{int(math.Round(math.Sqrt(float64(d.clusters)))), d.clusters}, Neighbours: o.Neighbours,
		Iterations: o.Iterations,
	})
	if err != nil {
		return nil, err
	}
	_, err = g.Build(d.engine, queue, rand.New(rand.NewPCG(5, 6)))
	return g, err
}

// gradients returns dL/dF (rows, C), L being the contrast of each batch.
func (d directions) gradients(mode string, queue []float32, graph *geodesic.Graph, features, keys []float32) ([]float32,
	error) {
	s, err := newStep(stepOptions{engine: d.engine, batch: d.batch, channels: d.channels, size: d.pool, mode: mode,
		temperature: d.temperature}, queue, graph)
	if err != nil {
		return nil, err
	}
	defer s.machine.Close()
	var all []float32
	n := d.batch * d.channels
	for at := 0; at < len(features); at += n {
		s.at(at/d.channels%d.pool, d.pool)
		if err := s.set(map[string]any{"f": features[at:][:n], "keys": keys[at:][:n]}); err != nil {
			return nil, err
		}
		if err := s.machine.RunAll(); err != nil {
			return nil, err
		}
		g, err := s.machine.Value(s.grad)
		if err != nil {
			return nil, err
		}
		all = append(all, g.F32...)
	}
	return all, nil
}

// describe sums gradients up.
func (d directions) describe(mode string, grad, features, keys []float32, owner []int32, centres []float32) direction {
	x, c := direction{mode: mode}, d.channels
	n := float64(len(grad) / c)
	for i := range len(grad) / c {
		g, f, k := grad[i*c:][:c], features[i*c:][:c], keys[i*c:][:c]
		v := -cosineOf(tangent(g, f), tangent(k, f))
		x.positive += v / n
		if v > 0 {
			x.share += 1 / n
		}
		x.centre += math.Abs(cosineOf(g, centres[int(owner[i])*c:][:c])) / n
	}
	batches := float64(len(grad) / (d.batch * c))
	for at := 0; at < len(grad); at += d.batch * c {
		g := grad[at:][:d.batch*c]
		x.ofBatch += effectiveRank(g, c) / batches
		x.norm += math.Sqrt(dot(g, g)) / batches
	}
	x.ofSet = effectiveRank(grad, c)
	return x
}

// tangent returns the part of g that is orthogonal to the unit vector f: moving along
// f changes nothing, since features are normalised.
func tangent(g, f []float32) []float32 {
	t, along := make([]float32, len(g)), dot(g, f)
	for i := range t {
		t[i] = g[i] - float32(along)*f[i]
	}
	return t
}

// cosineOf is 0 where a vector is 0.
func cosineOf(x, y []float32) float64 {
	n := math.Sqrt(dot(x, x) * dot(y, y))
	if n == 0 {
		return 0
	}
	return dot(x, y) / n
}

func meanCosine(x, y []float32, channels int) (mean float64) {
	for at := 0; at < len(x); at += channels {
		mean += cosineOf(x[at:][:channels], y[at:][:channels]) * float64(channels) / float64(len(x))
	}
	return mean
}

// effectiveRank is exp(-sum p log p) for the singular values of rows (n, channels) over
// their sum (Roy and Vetterli 2007, "The effective rank", eq. 2): the number of equally
// strong directions that the rows spread over. It is 0 of zeros.
func effectiveRank(rows []float32, channels int) float64 {
	m := mat.NewDense(len(rows)/channels, channels, nil)
	for i, v := range rows {
		m.Set(i/channels, i%channels, float64(v))
	}
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return math.NaN()
	}
	values, sum, entropy := svd.Values(nil), 0., 0.
	for _, v := range values {
		sum += v
	}
	if sum == 0 {
		return 0
	}
	for _, v := range values {
		if p := v / sum; p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return math.Exp(entropy)
}

func printDirections(w io.Writer, list []direction) {
	fmt.Fprint(w, "| gradient | cosine to the positive | rows where it is > 0 | cosine with the own centre, size | effective rank, a batch | all rows | norm |\n")
	fmt.Fprint(w, "| --- | --: | --: | --: | --: | --: | --: |\n")
	for _, d := range list {
		fmt.Fprintf(w, "| %s | %.3f | %.1f %% | %.3f | %.1f | %.1f | %.4f |\n", d.mode, d.positive, 100*d.share,
			d.centre, d.ofBatch, d.ofSet, d.norm)
	}
}
