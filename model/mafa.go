package model

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// Connector is a frozen model with a match head that judges the hardest negatives of
// matching during training (objective.mafa; Byun et al. 2023). It sees the images and
// captions that the student sees, so both must take images of one size and the tokens of
// one vocabulary; depth and widths are its own.
type Connector struct {
	Model config.Model
	Vocab int
	// Read copies the values of the parameter of a name and shape to dst.
	Read func(name string, shape []int, dst []float32) error
}

// NewConnectedALBEF is NewALBEF with the connector that objective.mafa asks for. A model
// built without it evaluates as well, but does not train.
func NewConnectedALBEF(cfg config.Config, vocab int, engine *kernel.Engine, c *Connector) (*ALBEF, error) {
	if err := c.check(cfg, vocab); err != nil {
		return nil, err
	}
	return newALBEF(cfg, vocab, engine, c)
}

// check compares what the connector takes with what the student is given.
func (c *Connector) check(cfg config.Config, vocab int) error {
	bad := func(format string, args ...any) error {
		return config.Errors{{
			Path: connectorKey, Value: cfg.Objective.MAFA.Connector, Msg: fmt.Sprintf(format, args...),
			Hint: "choose a checkpoint that was trained on the same data settings",
		}}
	}
	switch im, tx := c.Model.Image, c.Model.Text; {
	case c.Model.System != "albef":
		return bad("must be a model with a fusion encoder, of system albef (this one is of system %q)", c.Model.System)
	case c.Vocab != vocab:
		return bad("must have the vocabulary of this run, %d tokens (it has %d)", vocab, c.Vocab)
	case im.Size != cfg.Model.Image.Size:
		return bad("must take images of model.image.size = %d (it takes %d)", cfg.Model.Image.Size, im.Size)
	case tx.Positions < cfg.Data.Tokens:
		return bad("must have at least data.tokens = %d positions (it has %d)", cfg.Data.Tokens, tx.Positions)
	}
	return nil
}

// connectorKey is where the configuration names the connector.
const connectorKey = "objective.mafa.connector"

// connected returns an error for a step that needs a connector and has none.
func (m *ALBEF) connected() error {
	if m.connector == nil && m.cfg.Objective.MAFA.Connector != "" {
		return fmt.Errorf("model: %s: this model was built without its connector: build it with NewConnectedALBEF to train it", connectorKey)
	}
	return nil
}

// judge is a connector within a training step under construction.
type judge struct {
	*Connector
	params *Params
	nodes  *binding
}

// newJudge starts a connector in the graph of s. Its parameters are inputs of the graph
// like those of the student, and no gradient reaches them.
func (s *builder) newJudge(c *Connector) *judge {
	j := &judge{Connector: c, params: NewParams(0, func(string) bool { return false })}
	j.nodes = j.params.bind(s.g, false)
	j.nodes.prefix = "connector/"
	return j
}

// logits returns the connector's logits (R, 2) for pairs of texts and images of the
// batch, each (R) int32. It has no dropout and sees the first view of the images.
func (j *judge) logits(s *builder, texts, images *gorgonia.Node) *gorgonia.Node {
	im, tx, r := j.Model.Image, j.Model.Text, texts.Shape()[0]
	vit := encoders.ViT{Size: im.Size, Patch: im.Patch, Depth: im.Depth, Width: im.Width, Heads: im.Heads, MLP: im.MLP}
	bert := encoders.BERT{Vocab: j.Vocab, Positions: tx.Positions, Layers: tx.Layers, FusionLayers: tx.FusionLayers,
		Width: tx.Width, Heads: tx.Heads, MLP: tx.MLP}
	p, plain := encoders.NewScope(j.nodes), &encoders.Context{}
	tokens := vit.Forward(p.In("image"), s.tg.images)                                      // (B*T, Dimage)
	states := bert.Text(plain, p.In("text"), s.tg.clean.ids, s.tg.clean.lengths, s.l, nil) // (B*L, D)
	first := &encoders.Places{
		Rows:      s.fixedInts("first tokens of judged pairs", iota32(0, r, s.l)),
		Sequences: s.fixedInts("judged pairs", iota32(0, r, 1)),
	}
	pairs := encoders.Pairs{Texts: texts, Images: images}
	fused := bert.Fusion(plain, p.In("text"), states, s.tg.clean.lengths, tokens, pairs, first, s.l, vit.Tokens()) // (R, D)
	return encoders.Classifier{Classes: 2}.Forward(p.In("itm_head"), fused, 1)
}

// load reads the parameters.
func (j *judge) load() error {
	j.params.allocate(false)
	for _, q := range j.params.List() {
		if err := j.Read(q.Name, q.Shape, j.params.Value(q)); err != nil {
			return fmt.Errorf("%s: %w", connectorKey, err)
		}
	}
	return nil
}

// targets adds to the positives of a contrast what objective.mafa says: a share of the
// uniform distribution, and the hardest negatives that the connector takes for matches.
// columns (B) int32 is where the batch is among the columns, nil for 0, 1, ... B-1.
func (s *builder) targets(p objectives.Positives, columns *gorgonia.Node) objectives.Positives {
	p.Uniform = s.tg.uniform
	if s.judge != nil {
		p.Further = func(i2t, t2i *gorgonia.Node) (texts, images *gorgonia.Node) {
			r := s.relabel(i2t, t2i)
			if columns == nil {
				return r.Texts.Positive, r.Images.Positive
			}
			return contrast.LookUpColumns(columns, r.Texts.Positive), contrast.LookUpColumns(columns, r.Images.Positive)
		}
	}
	return p
}

// relabel judges the hardest negatives by the logits of the first contrast that asks.
func (s *builder) relabel(i2t, t2i *gorgonia.Node) *objectives.Relabelled {
	if s.relabelled == nil {
		c := s.m.cfg.Objective.MAFA
		r := objectives.Relabelling{
			Above: c.PositiveAbove, Below: c.NegativeBelow, IDs: s.tg.ids,
			Judge: func(texts, images *gorgonia.Node) *gorgonia.Node { return s.judge.logits(s, texts, images) },
		}.Build(i2t, t2i, s.fixedInts("batch", iota32(0, s.b, 1)))
		s.relabelled = &r
		s.tg.parts = append(s.tg.parts, namedNode{"mafa_positives", r.Positives(), true}, namedNode{"mafa_replaced", r.Replaced(), true})
	}
	return s.relabelled
}

// negatives returns what matching pairs each image and each text with, (B) int32 each,
// and the labels (3B) of its rows: relabelled where there is a connector, else sampled.
func (s *builder) negatives(c objectives.Contrast) (texts, images, labels *gorgonia.Node) {
	match := s.fixedInts("match", slices.Repeat([]int32{1}, s.b))
	if s.judge != nil {
		r := s.relabel(c.I2T, c.T2I)
		return r.Texts.Index, r.Images.Index, r.Labels(match)
	}
	texts, images = objectives.HardNegatives(c, s.tg.noiseI2T, s.tg.noiseT2I, s.tg.ids)
	return texts, images, objectives.MatchingLabels(match, images, texts)
}
