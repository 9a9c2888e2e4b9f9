package model

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Connector is a frozen model with a match head that judges the hardest negatives of
// matching during training (objective.mafa; Byun et al. 2023). It sees the images and
// captions that the student sees, so both must take images of one size and the tokens of
// one vocabulary; depth and widths are its own.
type Connector struct {
	Model config.Model
	Vocab int
	From  Source // of its parameters
}

// check compares what the connector takes with what the student is given.
func (c *Connector) check(cfg config.Config, vocab int) error {
	if c == nil {
		return nil
	}
	bad := func(format string, args ...any) error {
		return config.Errors{{
			Path: ConnectorKey, Value: cfg.Objective.MAFA.Connector, Msg: fmt.Sprintf(format, args...),
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
	case !slices.Equal(im.Mean, cfg.Model.Image.Mean) || !slices.Equal(im.Std, cfg.Model.Image.Std):
		return bad("must take images that are normalised as those of this run, by model.image.mean = %v and std = %v (it takes %v and %v)", cfg.Model.Image.Mean, cfg.Model.Image.Std, im.Mean, im.Std)
	case tx.Positions < cfg.Data.Tokens:
		return bad("must have at least data.tokens = %d positions (it has %d)", cfg.Data.Tokens, tx.Positions)
	}
	return nil
}

// ConnectorKey is where the configuration names the connector.
const ConnectorKey = "objective.mafa.connector"

// judge is a connector within a training step under construction.
type judge struct {
	*Connector
	params *Params
	nodes  *binding
}

// newJudge starts a connector in a step. Its parameters are inputs of the step like those
// of the student, and no gradient reaches them.
func newJudge(c *Connector, params *Params, g *gorgonia.ExprGraph) *judge {
	j := &judge{Connector: c, params: params}
	j.nodes = j.params.bind(g, false)
	j.nodes.prefix = "connector/"
	return j
}

// logits implements objectives.Judge. The connector has no dropout and sees the first view
// of the images.
func (j *judge) logits(s *objectives.Step, texts, of *gorgonia.Node) *gorgonia.Node {
	one, r := space.Space{Dim: j.Model.Head.Dim}, texts.Shape()[0]
	images := imageTower(config.Config{Model: j.Model}, one)
	bert := textEncoder(j.Model, Options{Vocab: j.Vocab}, one).(encoders.BERT)
	bert.Dropout = 0
	p, plain, l := encoders.NewScope(j.nodes), &encoders.Context{}, s.Fusion.TextLen
	clean := s.Captions.Clean
	tower := func(name string, frozen bool) encoders.Scope {
		if frozen {
			return p.In(name)
		}
		return tuned(j.Model, p.In(name), plain)
	}
	seen := images.Encode(plain, tower("image", j.Model.Image.Freeze),
		encoders.Inputs{batch.Images: s.Node(batch.Images)},
		encoders.Want{Tokens: true}) // (B*T, Dimage)
	states := bert.Text(plain, tower("text", j.Model.Text.Freeze),
		encoders.TextArgs{IDs: clean[batch.Tokens], Lengths: clean[batch.Lengths], Len: l}, nil) // (B*L, D)
	first := &encoders.Places{
		Rows:      s.Count("first tokens of judged pairs", 0, r, l),
		Sequences: s.Count("judged pairs", 0, r, 1),
	}
	fused := bert.Fusion(plain, tower("text", false), encoders.FusionArgs{
		Texts: states, Lengths: clean[batch.Lengths], Images: seen.Tokens,
		Pairs: encoders.Pairs{Texts: texts, Images: of}, At: first,
		TextLen: l, ImageLen: seen.Len,
	}) // (R, D)
	return objectives.MatchLogits(p, fused)
}

// load reads the parameters.
func (j *judge) load() error {
	if err := j.params.load(); err != nil {
		return fmt.Errorf("%s: %w", ConnectorKey, err)
	}
	return nil
}
