package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinyIdentities is a small configuration of metric learning by identities, with a learned metric.
func tinyIdentities(t testing.TB, sets ...string) config.Config {
	t.Helper()
	return check.Get(config.Load("", append([]string{
		"model.system=identities", "model.image.size=8", "model.image.patch=4", "model.image.depth=2", "model.image.width=16", "model.image.heads=2",
		"model.head.dim=6", "momentum.enabled=false", "queue.size=0", "train.batch_size=6", "data.identities.images=2", "run.seed=3",
		"objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.distill.alpha=0", "objective.itc.score=gssf", "objective.gssf.form=dense",
		"objective.triplet.weight=1", "objective.softmax.weight=0.5", "objective.softmax.classes=5",
	}, sets...)))(t)
}

// identitiesBatch is 6 random images of the identities 4, 1, 4, 2, 1 and 4: one of 2 has no positive.
func identitiesBatch() Batch {
	r := rand.New(rand.NewPCG(71, 1))
	b := Batch{Images: make([]float32, 6*3*8*8), IDs: []int32{4, 1, 4, 2, 1, 4}}
	for i := range b.Images {
		b.Images[i] = float32(r.NormFloat64())
	}
	return b
}

// naiveIdentityLosses are the losses of features f (B, C) by their definitions, with the metric w (C, C), nil for a
// cosine, or the Euclidean distance, and a classifier v (classes, C).
func naiveIdentityLosses(f []float32, ids []int32, l2 bool, w, v []float32, c config.Objective) (triplet, softmax, anchors float64) {
	n := len(ids)
	d := len(f) / n
	score := func(q, g int) (s float64) { // of a query with a gallery image
		for a := range d {
			x := float64(f[g*d+a])
			switch {
			case l2:
				s += (x - float64(f[q*d+a])) * (x - float64(f[q*d+a]))
			case w == nil:
				s += x * float64(f[q*d+a])
			default:
				for b := range d {
					s += x * float64(w[a*d+b]) * float64(f[q*d+b])
				}
			}
		}
		if l2 {
			return -math.Sqrt(s)
		}
		return s
	}
	one := func(diff float64) float64 {
		if c.Triplet.Soft {
			return math.Log1p(math.Exp(diff))
		}
		return max(0, c.Triplet.Margin+diff)
	}
	count := 0.
	for a := range n {
		far, near := math.Inf(1), math.Inf(-1)
		for p := range n {
			for q := range n {
				if p == a || ids[p] != ids[a] || ids[q] == ids[a] {
					continue
				}
				far, near = min(far, score(a, p)), max(near, score(a, q))
				if c.Triplet.Negatives == "all" {
					triplet += one(score(a, q) - score(a, p))
					count++
				}
			}
		}
		if !math.IsInf(far, 0) {
			if anchors++; c.Triplet.Negatives == "hardest" {
				triplet += one(near - far)
				count++
			}
		}
	}
	classes := len(v) / d
	for i := range n {
		var logits []float64
		sum := 0.
		for k := range classes {
			z := 0.
			for a := range d {
				z += float64(v[k*d+a]) * float64(f[i*d+a])
			}
			logits = append(logits, z)
			sum += math.Exp(z)
		}
		for k, z := range logits {
			y := c.Softmax.Smoothing / float64(classes)
			if k == int(ids[i]) {
				y += 1 - c.Softmax.Smoothing
			}
			softmax -= y * (z - math.Log(sum)) / float64(n)
		}
	}
	return triplet / count, softmax, anchors
}

// TestIdentityLosses compares the losses of a step with their definitions over the features that the encoder gives,
// with a metric that is not the identity, and gradients of all that is trained with finite differences.
func TestIdentityLosses(t *testing.T) {
	for name, sets := range map[string][]string{
		"hardest": nil, "hardest, soft": {"objective.triplet.soft=true"}, "all": {"objective.triplet.negatives=all", "objective.softmax.smoothing=0"},
		"all, soft, cosine": {"objective.triplet.negatives=all", "objective.triplet.soft=true", "objective.itc.score=cosine"},
		"hardest, l2":       {"objective.itc.score=l2", "objective.triplet.margin=1"},
	} {
		m := newViewsSystem(t, tinyIdentities(t, sets...))
		c, b := m.cfg.Objective, identitiesBatch()
		r := rand.New(rand.NewPCG(71, 2))
		var w []float32
		names := []string{"image/cls_token", "image/blocks/01/mlp/fc2/bias", "image_proj/weight", objectives.SoftmaxName}
		if q, ok := m.params.Get("gssf/weight"); ok {
			w = m.params.Value(q)
			for i := range w {
				w[i] += .3 * float32(r.NormFloat64())
			}
			names = append(names, "gssf/weight")
		}
		q, _ := m.params.Get(objectives.SoftmaxName)
		v := m.params.Value(q)
		for i := range v { // smaller than at the start, so that finite differences are
			v[i] /= 8
		}
		res := forward(t, m, b, Control{})
		got := partsOf(res)
		_, f := check.Get2(m.Image().Encode(t.Context(), m.feed(b, Control{}).Batch))(t)
		triplet, softmax, anchors := naiveIdentityLosses(f[:6*m.Dim()], b.IDs, c.ITC.Score == "l2", w, v, c)
		for part, want := range map[string]float64{"triplet": triplet, "softmax": softmax, "triplet_anchors": anchors} {
			if v, ok := got[part]; !ok || !(math.Abs(v-want) <= 1e-4*max(1, want)) {
				t.Errorf("%s: %s is %v, want %v", name, part, v, want)
			}
		}
		if anchors != 5 {
			t.Errorf("%s: %v anchors, want 5 of 6", name, anchors)
		}
		if c.Triplet.Negatives == "hardest" && !c.Triplet.Soft {
			continue // kinks, which the op is tested without
		}
		checkDifferences(t, m, func(float64) float64 {
			res := forward(t, m, b, Control{})
			var s float64
			for _, p := range res.Parts {
				switch p.Name {
				case "triplet":
					s += p.Value
				case "softmax":
					s += .5 * p.Value
				}
			}
			return s
		}, names)
	}
}

// TestIdentitiesEncodesOnce: a step of the system reads one column of pictures, and has no parameter of a second tower.
func TestIdentitiesEncodesOnce(t *testing.T) {
	m := newViewsSystem(t, tinyIdentities(t))
	for _, c := range m.Columns() {
		if c.Name != "ids" && c.Name != "images" {
			t.Errorf("a step reads the column %q", c.Name)
		}
	}
	if _, ok := m.params.Get("text_proj/weight"); ok {
		t.Error("there is a second head")
	}
}
