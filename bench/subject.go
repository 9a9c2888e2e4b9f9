package bench

import (
	"context"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/run"
)

// workload is a model with a batch of random data.
type workload struct {
	*model.Trainer
	feed  feed.Step
	clock int // update that the model is told to prepare for
}

// maskID stands for [MASK] in random vocabularies.
const maskID = 4

// late is an update at which every ramp of a loss is over.
const late = 1 << 40

// newWorkload builds the model of a configuration and a batch for it. The queue is full
// and read, distillation is at its full weight and every other ramp of a loss is over, as
// in the middle of a run. Entries of the queue are random rows, which batches overwrite.
//
// Masked language modelling draws masks of its own in every step, as in training, and
// drawing them is a part of the step. They fill objective.mlm.prob of the places in the
// mean; the rows of the loss above that (objectives.MaskCapacity) are computed by every
// matrix product, and counted as GFLOP, but have no label. Results saved before losses drew
// their own masks are of steps with a label in every row, at the same places in all.
func newWorkload(cfg config.Config, engine *compute.Engine, group parallel.Group) (*workload, error) {
	cfg, err := run.Resolve(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.AccumulatesFeatures() {
		return nil, config.Errors{{Path: "train.accumulate", Value: cfg.Train.Accumulate,
			Msg:  "must be \"gradients\": what is measured is the step of one micro-batch",
			Hint: "trainer train --dry-run measures steps over several"}}
	}
	o := model.Options{Engine: engine, Group: group, Vocab: cfg.Data.VocabSize, MaskID: maskID}
	k := cfg.Objective.KLOT
	if k.Weight > 0 {
		o.Reference = randomReference(cfg)
	}
	if cfg.Objective.Geometric.On() && cfg.Has(section.Stored) || k.Weight > 0 && k.Rows > 0 {
		o.ImagePool, o.TextPool = newPool(cfg.Model.Heads.InImage), newPool(cfg.Model.Heads.InText)
	}
	m, err := model.New(cfg, o)
	if err != nil {
		return nil, err
	}
	if q := m.Queue(); q != nil {
		q.Filled = q.Size()
		r := rand.New(rand.NewPCG(7, 8))
		fill(r, q.ImageBackbone)
		fill(r, q.TextBackbone)
	}
	return &workload{Trainer: m, feed: feed.Step{Batch: randomBatch(cfg, m.Columns()), Update: late},
		clock: cfg.Queue.StartSteps}, nil
}

// forward computes losses and gradients; step counts the random streams.
func (w *workload) forward(ctx context.Context, step int) error {
	if err := w.Before(w.clock); err != nil { // no rebuild of graphs is due
		return err
	}
	w.feed.Counter = step
	w.Stage(w.feed.Batch) // the next step's, as a loader has it ready
	_, err := w.Step(ctx, &w.feed)
	return err
}

// randomReference is an alignment of noise, as wide as one that is fitted.
func randomReference(cfg config.Config) *objectives.Reference {
	r, h := rand.New(rand.NewPCG(5, 6)), cfg.Model.Heads
	k := min(h.InImage, h.InText)
	if cfg.Objective.KLOT.Reference == "procrustes" {
		k = max(h.InImage, h.InText)
	}
	layer := func(d int) objectives.Layer {
		l := objectives.Layer{Weight: make([]float32, k*d), Bias: make([]float32, k)}
		fill(r, l.Weight)
		return l
	}
	return &objectives.Reference{Image: layer(h.InImage), Text: layer(h.InText)}
}

// fill draws from N(0, 1).
func fill(r *rand.Rand, x []float32) {
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
}

// randomBatch makes a batch of noise, of ids that count the rows, and of random texts of
// full length, of images with as many regions as there can be.
func randomBatch(cfg config.Config, columns []batch.Column) *batch.Batch {
	r, b := rand.New(rand.NewPCG(1, 2)), batch.New(cfg.RankRows(), columns...)
	for _, c := range columns {
		fill(r, b.Floats(c.Name))
		x := b.Ints(c.Name)
		for i := range x {
			switch c.Name {
			case batch.IDs:
				x[i] = int32(i)
			case batch.Tokens:
				x[i] = r.Int32N(int32(cfg.Data.VocabSize))
			case batch.Lengths:
				x[i] = int32(cfg.Data.Tokens)
			case batch.RegionLengths:
				x[i] = int32(cfg.Data.Regions.Most)
			case batch.ImageNeighbours, batch.TextNeighbours:
				x[i] = r.Int32N(poolRows)
			}
		}
	}
	return b
}
