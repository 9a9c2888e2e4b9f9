package model

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// tinyPairs is the model of pairs in tools/goldens/simcse.py, without dropout.
func tinyPairs(t testing.TB, task string, sets ...string) config.Config {
	t.Helper()
	return tinySimCSE(t, append([]string{"model.system=sentence_pairs", "objective.simcse.weight=0", "objective.sentence_pairs.weight=1", "objective.sentence_pairs.dropout=0", "model.text.dropout=0",
		"data.kind=sentence_pairs", `data.sentence_pairs.train_files=["-"]`, "data.sentence_pairs.task=" + task}, sets...)...)
}

// TestGoldenPairs compares steps of fine-tuning on pairs of sentences with PyTorch: losses to 1e-5, every gradient by
// name to 1e-4 of its largest element, and what the model then says of the pairs.
func TestGoldenPairs(t *testing.T) {
	for name, cfg := range map[string]config.Config{
		"pairs_classes":      tinyPairs(t, "snli", "model.text.pool=mean"),
		"pairs_scores":       tinyPairs(t, "sick", "model.text.pool=mean"),
		"pairs_joint":        tinyPairs(t, "rte", "objective.sentence_pairs.encoding=joint"),
		"pairs_joint_scores": tinyPairs(t, "stsb", "objective.sentence_pairs.encoding=joint"),
	} {
		t.Run(name, func(t *testing.T) {
			g, m := openGolden(t, name), build(t, cfg, "builtin", 2)
			g.giveAll(m)
			x := g.fill(batch.New(4, m.Columns()...))
			g.value("loss", stepOf(t, m, &feed.Step{Batch: x}).Loss)
			g.gradients(m)
			want := g.floats("expect/outputs")
			for _, n := range []int{4, 2} { // of any number of pairs
				part := batch.New(n, m.Classifier().Columns()...)
				for _, c := range part.Columns() {
					copy(part.Ints(c.Name), x.Ints(c.Name))
				}
				got := check.Get(m.Classifier().Logits(t.Context(), part))(t)
				closeTo(t, "what is said of the pairs", got, want[:len(want)/4*n], 1e-5)
			}
		})
	}
}

// TestPairsDropout: the dropout of the pooler is drawn for each step, and evaluation has none.
func TestPairsDropout(t *testing.T) {
	m := build(t, tinyPairs(t, "rte", "objective.sentence_pairs.encoding=joint", "objective.sentence_pairs.dropout=0.5", "model.heads.dropout=0"), "builtin", 2)
	q, _ := m.params.Get("pair_head/classifier/weight")
	for i := range m.params.Value(q) {
		m.params.Value(q)[i] = float32(i%5) - 2
	}
	b := sentenceBatch(3)
	x := batch.New(4, m.Columns()...)
	copy(x.Ints(batch.Tokens), b.Tokens)
	copy(x.Ints(batch.Lengths), b.Lengths)
	copy(x.Ints(batch.Labels), []int32{0, 1, 0, 1})
	loss := func(step int) float64 {
		return stepOf(t, m, &feed.Step{Batch: x, Update: step, Counter: step}).Loss
	}
	if a, b, again := loss(1), loss(2), loss(1); a == b || a != again {
		t.Errorf("losses of two steps and of the first again: %v, %v, %v", a, b, again)
	}
	said := func() []float32 {
		part := batch.New(4, m.Classifier().Columns()...)
		for _, c := range part.Columns() {
			copy(part.Ints(c.Name), x.Ints(c.Name))
		}
		y := check.Get(m.Classifier().Logits(t.Context(), part))(t)
		return slices.Clone(y)
	}
	if !slices.Equal(said(), said()) {
		t.Error("evaluation draws dropout")
	}
	if names := m.Text().Columns(); len(names) != 2 {
		t.Errorf("a sentence alone is encoded from %v", names)
	}
}
