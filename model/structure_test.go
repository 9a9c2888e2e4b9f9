package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// walks are the ends of l steps by the softmax of the cosines of rows (n, d) over tau.
func walks(rows []float32, n, l int, tau float64) []float64 {
	d, p := len(rows)/n, make([]float64, n*n)
	dot := func(i, j int) (s float64) {
		for k := range d {
			s += float64(rows[i*d+k]) * float64(rows[j*d+k])
		}
		return s
	}
	for i := range n {
		var sum float64
		for j := range n {
			p[i*n+j] = math.Exp(dot(i, j) / math.Sqrt(dot(i, i)*dot(j, j)) / tau)
			sum += p[i*n+j]
		}
		for j := range n {
			p[i*n+j] /= sum
		}
	}
	at := p
	for range l - 1 {
		next := make([]float64, n*n)
		for i := range next {
			for k := range n {
				next[i] += at[i/n*n+k] * p[k*n+i%n]
			}
		}
		at = next
	}
	return at
}

// naiveStructure is the mean divergence of walks among n rows before and after the head.
func naiveStructure(before, after []float32, n int, c objectives.Structure) (loss float64) {
	for l := 1; l <= c.Hops; l++ {
		q := walks(after, n, l, c.Temperature)
		for i, p := range walks(before, n, l, c.Target()) {
			loss += (p*math.Log(2*p/(p+q[i])) + q[i]*math.Log(2*q[i]/(p+q[i]))) / 2
		}
	}
	return loss / float64(n*c.Hops)
}

// TestStructure compares the loss of heads, whose rows before the head are those of the batch,
// with its definition.
func TestStructure(t *testing.T) {
	for _, modalities := range []string{"both", "image", "text"} {
		cfg := tinyHeads()
		cfg.Objective.ITC.InBatchWeight = 1
		cfg.Objective.Structure = objectives.Structure{Weighted: section.Weigh(3), Modalities: modalities, Hops: 3, Temperature: .5, TargetTemperature: .25}
		m := buildHeads(t, cfg)
		b := randomFeatures(cfg, 3)
		r := forward(t, m, b, Control{})
		got, total := map[string]float64{}, 0.
		for _, p := range r.Parts {
			got[p.Name] = p.Value
			if total += p.Value; p.Name != "itc_in_batch" {
				total += 2 * p.Value
			}
		}
		if !(math.Abs(total-r.Loss) <= 1e-5) {
			t.Errorf("%s: loss %v, want %v", modalities, r.Loss, total)
		}
		for side, x := range map[string]struct {
			e    *Encoder
			rows []float32
		}{"image": {m.Image(), b.ImageFeatures}, "text": {m.Text(), b.TextFeatures}} {
			value, ok := got["structure_"+side]
			if ok != (modalities == "both" || modalities == side) {
				t.Fatalf("%s has %v", modalities, r.Parts)
			}
			after := check.Get(m.EncodeFeatures(x.e, x.rows, cfg.Train.BatchSize))(t)
			if want := naiveStructure(x.rows, after, cfg.Train.BatchSize, cfg.Objective.Structure); ok && !(math.Abs(value-want) <= 1e-5*want) {
				t.Errorf("%s: structure_%s is %v, want %v", modalities, side, value, want)
			}
		}
	}
}

// TestStructureGradients: those of both heads are those of finite differences, with features of
// any length too.
func TestStructureGradients(t *testing.T) {
	for _, topology := range []string{"sphere", "Ob(4,2)", "euclid"} {
		cfg := tinyCLIP(topology)
		cfg.Objective.ITC.InBatchWeight = 0
		cfg.Objective.KLOT.Weight, cfg.Objective.Structure = 0, objectives.Structure{Weighted: section.Weigh(10), Modalities: "both", Hops: 2, Temperature: .5}
		m := buildCLIP(t, cfg)
		b := randomPairs(m, 5)
		checkDifferences(t, m, func(float64) float64 {
			r := forward(t, m, b, Control{})
			return 10 * (r.Parts[0].Value + r.Parts[1].Value)
		}, []string{"image_proj/weight", "text_proj/weight"})
	}
}

// TestStructureWarmUp: at the start of a warm-up the loss has no gradient and no part in the
// total, and the log has its value.
func TestStructureWarmUp(t *testing.T) {
	cfg := tinyHeads()
	cfg.Objective.Structure = objectives.Structure{Weighted: section.Weigh(3), Modalities: "image", Hops: 1, Temperature: .5, WarmupSteps: 4}
	cfg.Objective.ITC.InBatchWeight = 1
	m := buildHeads(t, cfg)
	b := randomFeatures(cfg, 3)
	for step, share := range []float64{0, .25, .5, .75, 1, 1} {
		r := forward(t, m, b, Control{Step: step})
		if want := r.Parts[0].Value + 3*share*r.Parts[1].Value; r.Parts[1].Value < 1e-3 || !(math.Abs(r.Loss-want) <= 1e-5) {
			t.Errorf("step %d: loss %v of %v, want %v", step, r.Loss, r.Parts, want)
		}
	}
}
