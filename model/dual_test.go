package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// TestTeacherAndQueueOfEverySystem computes the contrast with momentum features and a queue
// (ALBEF, eq. 6) from its definition, in each system of pairs that can have a teacher, with
// and without further positives. The student is its own teacher, so that the features are
// known.
func TestTeacherAndQueueOfEverySystem(t *testing.T) {
	base := combinedConfig()
	base.Objective.ITC.InBatchWeight, base.Objective.ITM.Weight, base.Objective.MLM.Weight = 0, 0, 0
	base.Objective.ITC.Temperature = 0.3
	for name, cfg := range map[string]config.Config{"albef": base, "clip": dualConfig(base), "heads": headsConfig(base)} {
		for _, positives := range []string{"pair", "id"} {
			cfg.Objective.ITC.Positives = positives
			m := build(t, cfg, "builtin", 2)
			m.params.CopyToMomentum()
			const alpha, filled, c = 0.4, 11, 8
			m.queue.Filled, m.queue.Pointer = filled, filled
			for i := range filled {
				m.queue.IDs[i] = int32(i % 5)
			}
			b := randomBatch(m, 7)
			res := forward(t, m, b, Control{Alpha: alpha, UseQueue: true})
			k := check.Get(m.Features())(t)
			n := len(b.IDs)
			ids := append(slices.Clone(b.IDs), m.queue.IDs[:filled]...)
			want := 0.
			for _, d := range [][3][]float32{{k.Image, k.Text, m.queue.Text}, {k.Text, k.Image, m.queue.Image}} {
				columns := append(slices.Clone(d[1]), d[2][:filled*c]...)
				for i := range n {
					var logits, hard []float64
					z, count := 0., 0.
					for j := range ids {
						s := 0.
						for k := range c {
							s += float64(d[0][i*c+k]) * float64(columns[j*c+k])
						}
						y := 0.
						if i == j || positives == "id" && ids[j] == b.IDs[i] {
							y = 1
						}
						logits, hard = append(logits, s/0.3), append(hard, y)
						z, count = z+math.Exp(s/0.3), count+y
					}
					for j, l := range logits {
						p := math.Exp(l) / z
						want -= ((1-alpha)*hard[j]/count + alpha*p) * math.Log(p) / float64(2*n)
					}
				}
			}
			if !(math.Abs(res.Loss-want) <= 1e-5*want) {
				t.Errorf("%s, %s: loss %v, want %v", name, positives, res.Loss, want)
			}
			check.OK(t, m.After())
			q := m.queue
			if q.Filled != filled+n || !sameBits(q.Image[filled*c:][:n*c], k.Image) || !sameBits(q.Text[filled*c:][:n*c], k.Text) || !slices.Equal(q.IDs[filled:][:n], b.IDs) {
				t.Errorf("%s: the batch is not in the queue: %d filled, ids %v", name, q.Filled, q.IDs)
			}
		}
	}
}

// TestNamesOfSystemsMakeNoDifference: with the parameters of another system's towers a loss
// that reads features alone has the same value: what a system is called makes no difference.
func TestNamesOfSystemsMakeNoDifference(t *testing.T) {
	cfg := combinedConfig()
	cfg.Objective.ITM.Weight, cfg.Objective.MLM.Weight = 0, 0
	cfg.Objective.ITC.Scores = objectives.Terms{{Kind: "gssf", Weight: 1}, {Kind: "geodesic", Weight: 0.5}}
	cfg.Objective.GSSF.Form, cfg.Objective.Geometric.Weight, cfg.Objective.TCL.Intra = "dense", 1, true
	a := build(t, cfg, "builtin", 2)
	// The towers of the systems start differently and have other options; those of ALBEF are
	// given to a dual encoder here, and its heads have no biases.
	b := build(t, dualConfig(cfg), "builtin", 2)
	b.design.image, b.design.text = a.design.image, a.design.text
	b.params = NewParams(cfg.Run.Seed, true)
	check.OK(t, b.newQueue())
	check.OK(t, b.buildStep())
	for _, m := range []*Trainer{a, b} {
		fillQueue(m.queue)
		t.Cleanup(func() { m.Close() })
	}
	for i := range 4 {
		x := randomBatch(a, uint64(i))
		var results []Result
		for _, m := range []*Trainer{a, b} {
			check.OK(t, m.Before(i))
			r := step(t, m, x, Control{Step: i, Alpha: 0.3, UseQueue: true})
			results = append(results, Result{Loss: r.Loss, Parts: slices.DeleteFunc(slices.Clone(r.Parts), func(p Part) bool {
				return p.Name == "graph/image/seconds" || p.Name == "graph/text/seconds"
			})})
		}
		if results[0].Loss != results[1].Loss || !slices.Equal(results[0].Parts, results[1].Parts) {
			t.Errorf("step %d: %+v and %+v", i, results[0], results[1])
		}
	}
	if !sameBits(a.params.Values(), b.params.Values()) || !sameBits(a.params.momentum, b.params.momentum) || !sameBits(a.queue.Image, b.queue.Image) {
		t.Error("other parameters, twins or queue")
	}
}

// TestHeadsReadFilledRowsAlone: noise in the rows of a queue that are not filled changes nothing.
func TestHeadsReadFilledRowsAlone(t *testing.T) {
	m := build(t, headsConfig(combinedConfig()), "builtin", 2)
	b := randomBatch(m, 2)
	loss := func() float64 {
		return forward(t, m, b, Control{Alpha: 0.2, UseQueue: true}).Loss
	}
	loss()
	check.OK(t, m.After())
	want := loss()
	r := rand.New(rand.NewPCG(1, 1))
	for i := 4 * m.Dim(); i < len(m.queue.Image); i++ {
		m.queue.Image[i], m.queue.Text[i] = r.Float32(), float32(math.NaN())
	}
	if got := loss(); got != want {
		t.Errorf("loss %v, with noise behind the queue %v", want, got)
	}
}
