package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/ops/geometric"
)

// Estimate returns the least memory that training a configuration takes, from its sizes
// alone: nothing is built. The rows that are prepared ahead and the queue are as they will
// be; of parameters and of what a step keeps for its backward pass only the large parts
// are counted, so that what does not fit by the estimate does not fit.
func Estimate(cfg config.Config) (Footprint, error) {
	m, err := modelOf(cfg, Options{}, nil)
	if err != nil {
		return Footprint{}, err
	}
	return estimate{m}.footprint(), nil
}

// Fits returns a *MemoryError for a configuration that this machine cannot train by its
// Estimate, and takes no memory itself. New does so too, and is exact where this says nil.
func Fits(cfg config.Config) error {
	f, err := Estimate(cfg)
	if err != nil {
		return err
	}
	if _, gpu := cfg.Compute.CUDA(); gpu {
		f.Buffers = 0 // they lie there
	}
	return f.fitsByPart()
}

// fitsByPart names in its error no more than what is already too large.
func (f Footprint) fitsByPart() error {
	for _, part := range []Footprint{
		{Parameters: f.Parameters, Gradients: f.Gradients, Moments: f.Moments, Momentum: f.Momentum, Queue: f.Queue},
		f,
	} {
		if err := part.fits(); err != nil {
			return err
		}
	}
	return nil
}

// estimate is how much memory the parts of training a model with the towers of its configuration take.
type estimate struct{ *Model }

// footprint is Estimate.
func (p estimate) footprint() Footprint {
	f := Footprint{Queue: p.queueBytes(), Plans: p.plansBytes(), Batches: p.batchBytes()}
	weights, kept := p.sizes()
	f.Parameters = 4 * weights
	f.Gradients = f.Parameters - 4*p.lockedWeights()
	f.Moments = 2 * f.Gradients
	lent := f.Gradients // results may lie where they will be
	if p.cfg.Train.AccumulateSteps > 1 {
		f.Gradients *= 2
	}
	if p.cfg.Momentum.Enabled && p.design.teacher {
		f.Momentum = f.Moments/2 - 4*p.fusedWeights()
	}
	if p.cfg.AccumulatesFeatures() {
		f.Features = 4 * 4 * int64(p.cfg.ComparedRows()) * int64(p.Dim()) // of both sides, with their gradients
	}
	f.Buffers = max(p.resultBytes(kept)-lent, 0)
	return f
}

// resultBytes returns the memory of what a step keeps for its backward pass, of towers that keep so many values of a
// row.
func (p estimate) resultBytes(kept int64) int64 {
	// similarities of both spaces and the gradient
	return 4 * (int64(p.cfg.RankRows())*kept + p.chunkValues() + p.tokenPlaces() + 3*p.planPairs())
}

// tokenPlaces counts the places of the nearest tokens that an interaction keeps for its backward
// pass.
func (p estimate) tokenPlaces() int64 {
	x, ok := p.design.interaction.(interact.MaxSim) // cross attention keeps nothing of a pair but its score
	if !ok {
		return 0
	}
	tokens := 0
	if x.ImageToText {
		n, _ := p.design.image.tower.Shape()
		tokens += n
	}
	if x.TextToImage {
		n, _ := p.design.text.tower.Shape()
		tokens += n
	}
	return int64(p.cfg.RankRows()) * int64(p.cfg.ContrastRows()) * int64(tokens)
}

// chunkValues counts the values of the points that pass a head at a time in the geometric
// term over pools, and the gradients that are added up there.
func (p estimate) chunkValues() int64 {
	if !p.cfg.Objective.Geometric.On() || !p.cfg.Has(section.Stored) {
		return 0
	}
	g, h := p.cfg.Objective.Geometric, p.cfg.Model.Heads
	width, sides := 0, int64(0)
	if g.Images() {
		width, sides = h.InImage, sides+1
	}
	if g.Texts() {
		width, sides = max(width, h.InText), sides+1
	}
	rows := geometric.Anchors(p.cfg.RankRows(), g.Neighbours, g.Chunk) * g.Neighbours
	weights, kept := p.sizes()
	return int64(rows)*(int64(width)+kept/2) + weights*sides/2
}

// batchBytes returns the memory of the batches and rows that a loader has under way.
func (p estimate) batchBytes() int64 {
	columns, err := Columns(p.cfg)
	if err != nil {
		return 0
	}
	row := int64(0)
	for _, c := range columns {
		n := int64(4)
		for _, axis := range c.Shape {
			n *= int64(axis)
		}
		row += n
	}
	d := p.cfg.Data
	batches := int64(p.cfg.HeldBatches() + d.Prefetch)
	if d.Prefetch == 0 {
		batches += 2
	}
	return row * (batches*int64(p.cfg.RankRows()) + 2*int64(d.Workers))
}

// sizes counts the weights of the matrices and the values of a sample that pass from block
// to block, which the backward pass reads.
func (p estimate) sizes() (weights, kept int64) {
	m := p.cfg.Model
	if p.cfg.Has(section.Stored) {
		return m.Heads.Weights(m.Head.Dim)
	}
	x, t := m.Image, m.Text
	if p.cfg.Has(section.Sentences) {
		return p.sentenceSizes()
	}
	weights = x.Weights()
	// of a layer without an adapter little need be kept
	some := p.cfg.Has(section.Tuned) && (!p.cfg.Has(section.Adapters) || len(m.LoRA.Layers) > 0)
	switch {
	case x.Freeze:
	case x.Style == encoders.StyleResNet || x.Style == encoders.StyleConvNet:
		kept = x.KeptValues()
	case some:
	case x.Style == encoders.StyleRegions:
		kept = int64(p.cfg.Data.Regions.Most) * int64(x.Width)
	default:
		kept = int64(x.Kept()) * int64(x.Width) * int64(x.Depth-1)
	}
	if p.cfg.Has(section.ImagesAlone) {
		return weights, kept
	}
	weights += t.Weights()
	for _, side := range []struct {
		head  encoders.Head
		width int
	}{{p.design.image.head, x.TokenWidth()}, {p.design.text.head, t.Width}} {
		if head, ok := side.head.(encoders.Projection); !ok || !head.Identity {
			weights += m.Head.Weights(side.width)
		}
	}
	if !t.Freeze && !some {
		kept += p.keptOfTexts()
	}
	weights += p.fusionWeights() + m.Interaction.Weights(m.Head.Dim) + p.fusedWeights()
	kept += p.queueLogits()
	w, k := p.captioningSizes()
	return weights + w, kept + k
}

// fusedWeights returns the weights of the matrices that fuse features, which have no momentum copies.
func (p estimate) fusedWeights() int64 {
	if p.cfg.Has(section.Stored) {
		return 0
	}
	return p.cfg.Objective.ADCL.Weights(p.cfg.Model.Head.Dim)
}

// queueLogits counts the products of a sample with the queue that objective.adcl keeps.
func (p estimate) queueLogits() int64 {
	return p.cfg.Objective.ADCL.Logits(p.cfg.Model.Head.Dim, p.cfg.Queue.Size)
}

// sentenceSizes are those of a text tower alone, for all texts of a row.
func (p estimate) sentenceSizes() (weights, kept int64) {
	m, t := p.cfg.Model, p.cfg.Model.Text
	weights = t.Weights()
	if head, ok := p.design.text.head.(encoders.Projection); !ok || !head.Identity {
		weights += m.Head.Weights(t.Width)
	}
	if p.cfg.Has(section.Tuned) && (!p.cfg.Has(section.Adapters) || len(m.LoRA.Layers) > 0) {
		return weights, 0
	}
	return weights, p.keptOfTexts()
}

// keptOfTexts counts the values that pass from layer to layer of a text tower, for all texts of a row.
func (p estimate) keptOfTexts() int64 {
	t := p.cfg.Model.Text
	word := int64(t.Width) * int64(t.Layers-1)
	if t.Style == encoders.StyleGRU {
		word = int64(t.Recurrent().Gates())
	}
	return int64(p.cfg.TextsOfRow()) * int64(p.cfg.Data.Tokens) * word
}

// decoderWeights returns the weights of the matrices of the decoder, without those of words.
func (p estimate) decoderWeights() int64 {
	d := int64(p.cfg.Model.Text.Width)
	return p.fusionWeights() + d*d + d*int64(p.cfg.Model.Text.Positions)
}

// captioningSizes are those of the decoder of objective.captioning or objective.vqa: of recurrent units the logits of a
// caption, its gates and its weights of the tokens of an image.
func (p estimate) captioningSizes() (weights, kept int64) {
	c := p.cfg.Objective.Captioning
	if p.cfg.Writes() {
		return p.decoderWeights(), 0
	}
	if c.Weight == 0 {
		return 0, 0
	}
	tokens, width := p.design.image.tower.Shape()
	words := p.cfg.Data.Tokens
	if c.Tokens > 0 {
		words = min(words, c.Tokens)
	}
	v, h, e := int64(p.o.Vocab), int64(c.Width), int64(c.Embedding)
	// of the encoder, the attention, the decoder, and by word
	weights = h*int64(width) + 6*h*h + 2*h*h + 3*h*(2*h+e) + v*(h+e)
	return weights, int64(max(1, words-1))*(v+4*h+int64(tokens)) + 4*h*int64(tokens)
}

// lockedWeights returns those of sizes that are not trained.
func (p estimate) lockedWeights() (n int64) {
	m := p.cfg.Model
	if p.cfg.Has(section.Stored) {
		return 0
	}
	last := m.Tuning.PartialBlocks // of which a tuned tower trains the weights
	switch x := m.Image; {
	case p.cfg.Has(section.Sentences):
	case x.Freeze:
		n += x.Weights()
	case x.Style == encoders.StyleResNet:
		_, locked, _ := x.Network().Sizes()
		n += locked
	case p.cfg.Has(section.Tuned) && x.Transforms():
		x.Depth -= last
		n += x.Weights()
	}
	if p.cfg.Has(section.ImagesAlone) {
		return n
	}
	switch t := m.Text; {
	case t.Freeze:
		n += t.Weights()
	case p.cfg.Has(section.Tuned) && t.Style != encoders.StyleGRU:
		t.Layers -= last
		n += t.Weights()
	}
	if p.cfg.Has(section.Tuned) && last == 0 {
		n += p.fusionWeights()
	}
	return n
}

// fusionWeights returns the weights of the matrices of the fusion layers.
func (p estimate) fusionWeights() int64 {
	x, t := p.cfg.Model.Image, p.cfg.Model.Text
	if p.design.fusion == nil {
		return 0
	}
	keys := 2 * int64(t.Width) * int64(x.TokenWidth()) // one for all pictures of a text
	return (t.BlockWeights()+2*int64(t.Width)*int64(t.Width))*int64(p.design.fusion.CrossLayers()) +
		keys*int64(t.FusionLayers)
}

// queueBytes returns the memory of a queue: rings of features, one for each modality, and
// the ids; with the graphs over them, their centres, paths, owners and reaches, and once
// more for a rebuild beside the steps.
func (p estimate) queueBytes() int64 {
	c := p.cfg
	n, dim, rings := int64(c.Queue.Size), int64(c.Model.Head.Dim), int64(2)
	if p.design.views {
		rings = 1
	}
	bytes := 4 * n * (rings*dim + 1)
	image, text := p.backboneWidths()
	bytes += 4 * n * int64(image+text)
	if g := c.Objective.Geodesic; n > 0 && c.Has(section.Graph) {
		k := int64(g.Layers[len(g.Layers)-1])
		graph := 4 * (k*dim + k*k + 2*n) // of the bottom layer; those above are small
		bytes += rings * graph
		if g.LagSteps > 0 {
			bytes += rings * (graph + 4*n*dim)
		}
	}
	return bytes
}

// plansBytes returns the memory of the transport plans of objective.klot: those of both spaces in
// float64, and what a plan needs to be found, 32 bytes for each pair of rows.
func (p estimate) plansBytes() int64 { return 32 * p.planPairs() }

// planPairs returns the number of pairs of rows that the transport plans of a step have, 0 without
// them.
func (p estimate) planPairs() int64 {
	k := p.cfg.Objective.KLOT
	if !k.On() {
		return 0
	}
	n := int64(p.cfg.ContrastRows() + k.Rows)
	return n * n
}

// backboneWidths returns how many values of each sample's class tokens the queue keeps
// before the heads of images and of texts.
func (p estimate) backboneWidths() (image, text int) {
	g := p.cfg.Objective.Geometric
	if !p.cfg.Has(section.BackboneQueue) {
		return 0, 0
	}
	if g.Images() {
		image = p.design.image.tower.Classes() * p.image.Width()
	}
	if g.Texts() {
		text = p.design.text.tower.Classes() * p.text.Width()
	}
	return image, text
}
