package sentencepairs

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// Loss is fine-tuning on pairs of sentences (data.kind = "sentence_pairs"): a classifier of their classes, or a
// regression of their scores. Sentences are encoded each by itself (Reimers and Gurevych 2019, "Sentence-BERT", section
// 3) or side by side (Devlin et al. 2019, "BERT", section 4).
//
// It is the cross-entropy of the classes, or the mean squared difference to the scores. Scores run from 0 to 1, by
// which the least and the largest of the task are replaced; a cosine is compared with these as it is, as in
// sentence-transformers.
type Loss struct {
	section.Weighted
	// separate (vectors u and v of model.text.pool: classes by a linear layer over u, v and |u-v|, scores by their
	// cosine) | joint (both sentences in one text, [CLS] a [SEP] b [SEP] with types: a pooler and a linear layer over
	// the first token)
	Encoding string `toml:"encoding" fixed:"model"`
	// of what the pooler gives
	Dropout float64 `toml:"dropout" when:"encoding=joint"`
}

// Values of objective.sentence_pairs.encoding.
const (
	Separate = "separate"
	Joint    = "joint"
)

// HeadName is the scope of the parameters of the head.
const HeadName = "pair_head"

var (
	_ objectives.Preparer   = (*Loss)(nil)
	_ objectives.Columned   = (*Loss)(nil)
	_ objectives.Classifier = (*Loss)(nil)
)

// Defaults implements section.Defaulter.
func (p *Loss) Defaults() { *p = Loss{Encoding: Separate, Dropout: 0.1} }

// Joint says whether both sentences of a pair are one text.
func (p *Loss) Joint() bool { return p.On() && p.Encoding == Joint }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact { return []section.Fact{section.Beside} }

// Check implements section.Checked.
func (p *Loss) Check(k *section.Checker) {
	k.OneOf("encoding", Separate, Joint)
	k.BelowOne("dropout")
	judges, named := k.Has(section.SentencePairs), fmt.Sprintf("model.system %q", k.System)
	k.Require("weight", judges || p.Weight == 0, "must be 0",
		named+` reads no pairs of sentences: use "sentence_pairs"`)
	k.Require("weight", !judges || p.Weight > 0, "must be > 0", "it is the loss of "+named)
	if !judges {
		return
	}
	k.Training("data.kind", k.Value("data.kind") == Name, `must be "`+Name+`"`, named+" is trained on these")
	k.Training("model.text.freeze", !k.Value("model.text.freeze").(bool), "must be false",
		named+" trains the text tower")
}

// task is that of the data: its classes or its range of scores.
func task(h objectives.Host) sentencepairs.Task {
	return section.Of[source.SentencePairs](h.Config).Of()
}

// Columns implements objectives.Columned: classes or scores.
func (*Loss) Columns(h objectives.Host) []batch.Column {
	if task(h).Scored() {
		return []batch.Column{{Name: batch.Scores}}
	}
	return []batch.Column{{Name: batch.Labels, Type: batch.Int32}}
}

// Prepare implements objectives.Preparer.
func (p *Loss) Prepare(s *objectives.Step) {
	if s.Reads.Online.Text.Features = true; !p.Joint() {
		s.Reads.Online.Text.Behind = []batch.Text{batch.PositiveText}
	}
}

// Outputs implements objectives.Classifier.
func (p *Loss) Outputs(s *objectives.Step, x objectives.Side) *gorgonia.Node {
	root := s.Params.As(encoders.Traits{Settings: "data.sentence_pairs.task to one of as many classes"}).In(HeadName)
	head := encoders.PairHead{Classes: len(task(s.Host).Classes), Dropout: p.Dropout}
	if p.Joint() {
		return head.Joint(s.Student, root, x.Classes)
	}
	return head.Separate(root, x.Classes, x.Behind)
}

// Build implements objectives.Loss.
func (p *Loss) Build(s *objectives.Step) []objectives.Part {
	y, t, column := p.Outputs(s, s.Online.Text), task(s.Host), p.Columns(s.Host)[0]
	if !t.Scored() {
		return s.Classification("pairs", p.Weight,
			contrast.CrossEntropyArgs{Logits: y, Labels: s.Column(column, s.Rows)})
	}
	s.Read(column)
	want := s.Floats("scores from 0 to 1", func(f *feed.Step, dst []float32) error {
		for i, v := range f.Batch.Floats(batch.Scores) {
			dst[i] = float32((float64(v) - t.Low) / (t.High - t.Low))
		}
		return nil
	}, s.Rows, 1)
	difference := arith.Combine([]float32{1, -1}, y, want) // (B, 1)
	return []objectives.Part{s.Part("pairs", p.Weight, arith.Mean(arith.Square(difference)))}
}
