package main

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives"
)

// queue fills a queue of momentum features with random unit vectors, and adds it.
func (p *parity) queue() {
	q, dim := p.model.Queue(), p.model.Dim()
	if q == nil {
		return
	}
	for name, x := range map[string][]float32{"queue/image": q.Image, "queue/text": q.Text} {
		if len(x) == 0 {
			continue
		}
		random := rand.New(rand.NewPCG(12, uint64(len(name))))
		for row := range len(x) / dim {
			unit(x[row*dim:][:dim], random)
		}
		q.Filled = len(x) / dim
		p.add(name, []int{q.Filled, dim}, x)
	}
	for i := range q.IDs {
		q.IDs[i] = model.NoID
	}
}

// enqueued adds the queue of images as the update leaves it.
func (p *parity) enqueued() error {
	if !p.cfg.Has(section.Views) {
		return nil
	}
	if err := p.model.After(); err != nil {
		return err
	}
	if q := p.model.Queue(); q != nil {
		p.add("queued/image", []int{q.Filled, p.model.Dim()}, q.Image)
	}
	return nil
}

// unit fills x with a random unit vector.
func unit(x []float32, r *rand.Rand) {
	sum := 0.0
	for i := range x {
		x[i] = float32(r.NormFloat64())
		sum += float64(x[i]) * float64(x[i])
	}
	for i := range x {
		x[i] /= float32(math.Sqrt(sum))
	}
}

// masks adds what masked language modelling draws in a step: the tokens with masks, and the words that are predicted
// (-100: none).
func (p *parity) masks(s *feed.Step) error {
	if p.cfg.Objective.MLM.Weight == 0 {
		return nil
	}
	tokens, lengths, prob := s.Batch.Ints(batch.Tokens), s.Batch.Ints(batch.Lengths), p.cfg.Objective.MLM.Prob
	rows := s.Batch.Rows()
	k := objectives.Masker{Prob: prob, Vocab: vocabulary, MaskID: maskID,
		Capacity: objectives.MaskCapacity(rows, len(tokens)/rows, prob)}
	var m objectives.Masked
	if err := k.Apply(rng.New(p.cfg.Run.Seed, rng.Mask, s.Stream()), tokens, lengths, &m); err != nil {
		return err
	}
	labels := make([]int32, len(tokens))
	for i := range labels {
		labels[i] = objectives.IgnoreLabel
	}
	for i, at := range m.Positions[:m.Count] {
		labels[at] = m.Labels[i]
	}
	shape := []int{rows, len(tokens) / rows}
	p.add("masked/tokens", shape, m.Tokens)
	p.add("masked/labels", shape, labels)
	return nil
}
