package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// tinySimCSE is a small configuration of sentences alone, without dropout.
func tinySimCSE(t testing.TB, sets ...string) config.Config {
	t.Helper()
	return check.Get(config.Load("", append([]string{
		"model.system=simcse", "model.text.layers=2", "model.text.fusion_layers=0", "model.text.width=12", "model.text.heads=2", "model.text.positions=10", "model.text.dropout=0.1",
		"model.head.dim=12", "momentum.enabled=false", "queue.size=0", "train.batch_size=4", "data.tokens=6", "run.seed=3",
		"objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "objective.distill.alpha=0", "objective.simcse.weight=0.5", "objective.simcse.temperature=0.3",
	}, sets...)))(t)
}

// triplets give a configuration columns of positives and hard negatives.
var triplets = []string{"data.kind=sentences", `data.sentences.train_files=["-"]`, "data.sentences.positive=p", "data.sentences.negative=n", "model.text.dropout=0"}

// sentenceBatch is 4 rows of three random texts.
func sentenceBatch(seed uint64) Batch {
	r := rand.New(rand.NewPCG(seed, 7))
	texts := func() (ids, lengths []int32) {
		ids, lengths = make([]int32, 4*6), make([]int32, 4)
		for i := range lengths {
			lengths[i] = int32(3 + r.IntN(4))
			for k := range lengths[i] {
				ids[i*6+int(k)] = int32(5 + r.IntN(tinyVocab-5))
			}
			ids[i*6] = 2
		}
		return ids, lengths
	}
	b := Batch{IDs: []int32{0, 1, 2, 3}}
	b.Tokens, b.Lengths = texts()
	b.Positives, b.PositiveLengths = texts()
	b.Negatives, b.NegativeLengths = texts()
	return b
}

// classesOf encodes the texts of a batch without dropout: (4, D).
func classesOf(t testing.TB, m *Trainer, ids, lengths []int32) []float32 {
	t.Helper()
	x := batch.New(4, m.Text().Columns()...)
	copy(x.Ints(batch.Tokens), ids)
	copy(x.Ints(batch.Lengths), lengths)
	c := check.Get(m.Text().EncodeClasses(t.Context(), x))(t)
	return slices.Clone(c)
}

// headed is the head of SimCSE of rows x (n, d) in float64: tanh(W x + b).
func headed(m *Trainer, name string, x []float32) []float64 {
	q, _ := m.params.Get(name + "/weight")
	p, _ := m.params.Get(name + "/bias")
	w, bias := m.params.Value(q), m.params.Value(p)
	c := len(bias)
	d := len(w) / c
	var y []float64
	for i := range len(x) / d {
		for k := range c {
			v := float64(bias[k])
			for j := range d {
				v += float64(w[k*d+j]) * float64(x[i*d+j])
			}
			y = append(y, math.Tanh(v))
		}
	}
	return y
}

// wide is x in float64.
func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

// naiveSimCSE is equation 5 of Gao et al. 2021 over rows of d channels, without hard negatives where z3 is nil, and how
// often the positive is nearest.
func naiveSimCSE(z1, z2, z3 []float64, d int, tau, alpha float64) (loss, hits float64) {
	cosine := func(a, b []float64) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
		}
		return ab / math.Sqrt(aa*bb)
	}
	n := len(z1) / d
	row := func(z []float64, i int) []float64 { return z[i*d : (i+1)*d] }
	for i := range n {
		own, sum, best := 0., 0., true
		for j := range n {
			s := math.Exp(cosine(row(z1, i), row(z2, j)) / tau)
			if sum += s; i == j {
				own = s
			}
		}
		for j := range n {
			best = best && (i == j || math.Exp(cosine(row(z1, i), row(z2, j))/tau) < own)
			if z3 == nil {
				continue
			}
			s := math.Exp(cosine(row(z1, i), row(z3, j)) / tau)
			if i == j {
				s *= alpha
			}
			sum, best = sum+s, best && s < own
		}
		if loss += math.Log(sum/own) / float64(n); best {
			hits += 1 / float64(n)
		}
	}
	return loss, hits
}

// TestSimCSE compares the loss of a step with given positives with its definition over what the tower gives, for every
// head and pool, and gradients with finite differences.
func TestSimCSE(t *testing.T) {
	for name, sets := range map[string][]string{
		"training head":        nil,
		"head always":          {"objective.simcse.head=always", "model.head.dim=7", "objective.simcse.hard_negative_weight=3"},
		"no head, mean":        {"objective.simcse.head=none", "model.text.pool=mean"},
		"first and last layer": {"model.text.pool=first_last", "objective.simcse.hard_negative_weight=0.5"},
		"without negatives":    {"data.sentences.negative="},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tinySimCSE(t, slices.Concat(triplets, sets)...)
			m := build(t, cfg, "builtin", 2)
			b, c := sentenceBatch(5), cfg.Objective.SimCSE
			res := forward(t, m, b, Control{})
			got := partsOf(res)
			z := func(ids, lengths []int32) []float64 {
				x := classesOf(t, m, ids, lengths)
				switch c.Head {
				case "training":
					return headed(m, objectives.SentenceHeadName, x)
				case "always":
					return headed(m, "text_proj", x)
				}
				return wide(x)
			}
			z1, z2, z3 := z(b.Tokens, b.Lengths), z(b.Positives, b.PositiveLengths), z(b.Negatives, b.NegativeLengths)
			if !cfg.Has(section.Negatives) {
				z3 = nil
			}
			loss, hits := naiveSimCSE(z1, z2, z3, len(z1)/4, c.Temperature, c.HardNegativeWeight)
			if !(math.Abs(got["simcse"]-loss) <= 1e-5*loss) || !(math.Abs(res.Loss-loss/2) <= 1e-5*loss) || !(math.Abs(got["simcse_accuracy"]-hits) <= 1e-6) {
				t.Errorf("simcse %v, loss %v and accuracy %v, want %v, half of it and %v", got["simcse"], res.Loss, got["simcse_accuracy"], loss, hits)
			}
			names := []string{"text/embeddings/word/weight", "text/layers/00/attention/qkv/weight", "text/layers/01/ffn/output/bias"}
			if c.Head == "training" {
				names = append(names, objectives.SentenceHeadName+"/weight", objectives.SentenceHeadName+"/bias")
			} else if c.Head == "always" {
				names = append(names, "text_proj/weight", "text_proj/bias")
			}
			checkDifferences(t, m, func(float64) float64 {
				return forward(t, m, b, Control{}).Loss
			}, names)
		})
	}
}

// TestSimCSEDropout: without given positives a text is its own under other dropout masks: the masks of both passes
// differ, a step again draws them again, gradients are those of the masks that were drawn, and a step encodes once.
func TestSimCSEDropout(t *testing.T) {
	m := build(t, tinySimCSE(t), "builtin", 2)
	b := sentenceBatch(9)
	loss := func(step int) float64 {
		return forward(t, m, b, Control{Step: step}).Loss
	}
	first := loss(1)
	if again := loss(1); again != first {
		t.Errorf("a step made again has loss %v, before %v", again, first)
	}
	if other := loss(2); other == first {
		t.Errorf("another step has the same masks: loss %v", other)
	}
	z1 := headed(m, objectives.SentenceHeadName, classesOf(t, m, b.Tokens, b.Lengths))
	same, _ := naiveSimCSE(z1, z1, nil, 12, 0.3, 1)
	if math.Abs(first-same/2) < 1e-4 {
		t.Errorf("the loss is %v, as if both passes had one mask", first)
	}
	checkDifferences(t, m, func(float64) float64 { return loss(1) }, []string{"text/layers/00/attention/qkv/weight", "text/layers/01/ffn/output/bias", objectives.SentenceHeadName + "/weight"})
	for _, c := range m.Columns() {
		if c.Name != batch.IDs && c.Name != batch.Tokens && c.Name != batch.Lengths {
			t.Errorf("a step reads the column %q", c.Name)
		}
	}
	for _, n := range m.step.loss.Graph().AllNodes() {
		if s := n.Shape(); len(s) == 2 && s[0] == 4*6 {
			t.Errorf("%v has the rows of one pass, which there is none of: both are one", n)
		}
	}
}

// TestSentencesThreads: a step has the same bits on 1, 2 and 5 threads.
func TestSentencesThreads(t *testing.T) {
	mcse := tinyMCSE()
	mcse.Model.Text.Dropout = 0.1
	for name, cfg := range map[string]config.Config{
		"dropout": tinySimCSE(t), "triplets": tinySimCSE(t, append([]string{"model.text.pool=first_last"}, triplets...)...), "mcse": mcse,
		"pairs": tinyPairs(t, "snli"), "joint": tinyPairs(t, "stsb", "objective.sentence_pairs.encoding=joint", "objective.sentence_pairs.dropout=0.3"),
	} {
		var want []float32
		for _, threads := range []int{1, 2, 5} {
			m := build(t, cfg, "builtin", threads)
			x := batch.New(cfg.Train.BatchSize, m.Columns()...)
			r := rand.New(rand.NewPCG(4, 4))
			for _, c := range x.Columns() {
				for i := range x.Ints(c.Name) {
					x.Ints(c.Name)[i] = int32(r.IntN(2) + 3)
					if c.Name == batch.Labels || c.Name == batch.Segments {
						x.Ints(c.Name)[i] -= 3
					}
				}
				for i := range x.Floats(c.Name) {
					x.Floats(c.Name)[i] = r.Float32()
				}
			}
			res := stepOf(t, m, &feed.Step{Batch: x, Update: 1, Counter: 1})
			got := append(slices.Clone(m.params.Grads()), float32(res.Loss))
			if want == nil {
				want = got
			}
			if !sameBits(got, want) {
				t.Errorf("%s: other bits on %d threads", name, threads)
			}
		}
	}
}
