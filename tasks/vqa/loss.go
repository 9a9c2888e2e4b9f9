package vqa

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"gorgonia.org/gorgonia"
)

// Loss is the loss of a decoder that writes the answers to a question about an image from the states of the fusion
// layers (ALBEF, Li et al. 2021, section 4): the sum over the tokens of an answer, times its weight, the mean over the
// questions of a batch. The decoder has as many layers as model.text.fusion_layers.
//
//	L = 1/B sum_i sum_a w_ia sum_t (1-alpha) CE(token t+1) + alpha H(teacher, token t+1)
//
// over the questions i of a batch, their answers a of weight w_ia, and the tokens of an answer but the last. The
// teacher is the momentum copies of the towers, the fusion layers and the decoder. The states of a question are
// computed once, however many answers it has.
type Loss struct {
	section.Weighted
	// answers of a question that take part, the heaviest
	Answers int `toml:"answers" max:"1000"`
	// token places of an answer, with those that stand around its words
	Tokens int `toml:"tokens" max:"65536"`
	// answers of a batch for which there is room, for a question on average; what does not fit is left out, the
	// lightest first; 0: objective.vqa.answers
	Rows float64 `toml:"rows" max:"1000"`
}

var (
	_ objectives.Preparer = (*Loss)(nil)
	_ objectives.Columned = (*Loss)(nil)
)

// Defaults implements section.Defaulter.
func (l *Loss) Defaults() { *l = Loss{Answers: 10, Tokens: 10} }

// Gives implements section.Giver.
func (*Loss) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft, section.States, section.Downstream, section.Decoder}
}

// Check implements section.Checked.
func (l *Loss) Check(k *section.Checker) {
	k.NotNegative("rows")
	k.Positive("answers")
	k.Require("tokens", l.Tokens >= 3, "must be at least 3", "two tokens stand around the words of an answer")
	k.Require("tokens", l.Weight == 0 || l.Tokens <= int(k.Number("model.text.positions"))+1,
		"must be at most model.text.positions + 1", "the last token of an answer has no position")
}

// Columns implements objectives.Columned.
func (l *Loss) Columns(objectives.Host) []batch.Column {
	return []batch.Column{
		{Name: batch.Answers, Shape: []int{l.Answers, l.Tokens}, Type: batch.Int32},
		{Name: batch.AnswerLengths, Shape: []int{l.Answers}, Type: batch.Int32},
		{Name: batch.AnswerWeights, Shape: []int{l.Answers}},
	}
}

// Prepare implements objectives.Preparer.
func (l *Loss) Prepare(s *objectives.Step) {
	objectives.Need(s.Fusion != nil, "vqa", "this system has no fusion layers, whose states the decoder reads")
	for _, r := range s.Distilled() {
		r.Image.Tokens, r.Text.Tokens = true, true
	}
	s.Read(l.Columns(s.Host)...)
}

// room is how many answers of a batch take part at most.
func (l *Loss) room(questions int) int {
	if l.Rows == 0 {
		return questions * l.Answers
	}
	return min(questions*l.Answers, max(1, int(math.Ceil(float64(questions)*l.Rows))))
}

// Build implements objectives.Loss.
func (l *Loss) Build(s *objectives.Step) []objectives.Part {
	rows := l.room(s.Rows)
	d := objectives.NewDecoderTargets("answer", rows, l.Tokens)
	out := 0
	var counts []int32
	s.OnFill(func(f *feed.Step) (err error) {
		if out, err = l.fill(f, d, rows); err != nil || s.Ranks.Size() == 1 {
			return err
		}
		if counts, err = s.Ranks.Group.GatherInts(counts[:0], []int32{int32(d.Rows)}); err != nil {
			return err
		}
		first := 0
		for _, n := range counts[:s.Ranks.Rank()] {
			first += int(n)
		}
		d.Number(first)
		return nil
	})
	f := s.Fusion
	lengths := s.Captions.Clean[batch.Lengths]
	states := func(c *encoders.Context, p encoders.Scope, x objectives.Sides) *gorgonia.Node {
		return f.Fusion(c, p, encoders.FusionArgs{Texts: x.Text.Tokens, Lengths: lengths, Images: x.Image.Tokens,
			TextLen: f.TextLen, ImageLen: f.ImageLen})
	}
	x := objectives.DecoderStates{Online: states(s.Student, f.Params, s.Online), Lengths: lengths, Len: f.TextLen} // (B*L, D)
	if s.Alpha() != nil {
		x.Teacher = states(s.TeacherContext, f.MomentumParams, s.Teacher)
	}
	parts := []objectives.Part{s.Part("vqa", l.Weight, d.Loss(s, s.Decoder(), x))}
	if rows < s.Rows*l.Answers {
		left := s.Floats("answers left out",
			func(_ *feed.Step, dst []float32) error { dst[0] = float32(out * s.Ranks.Size()); return nil })
		parts = append(parts, objectives.Part{Name: "vqa_left_out", Node: arith.Times(1, left), Measure: true})
	}
	return parts
}

// answer is one of a batch.
type answer struct {
	question, place int
	weight          float32
}

// fill writes the answers of a batch, at most rows of them, and returns how many do not fit: the lightest, of equal
// ones those that come last.
func (l *Loss) fill(f *feed.Step, d *objectives.DecoderTargets, rows int) (out int, err error) {
	tokens, lengths, weights := f.Batch.Ints(batch.Answers), f.Batch.Ints(batch.AnswerLengths),
		f.Batch.Floats(batch.AnswerWeights)
	var all []answer
	for i, w := range weights {
		if w == 0 {
			continue
		}
		if n := lengths[i]; n < 2 || int(n) > l.Tokens {
			return 0, fmt.Errorf("vqa: answer %d of question %d of the batch has %d tokens: want 2 to %d, the first and the last of which stand around it", i%l.Answers, i/l.Answers, n, l.Tokens)
		}
		all = append(all, answer{i / l.Answers, i, w})
	}
	if out = max(0, len(all)-rows); out > 0 {
		slices.SortStableFunc(all, func(a, b answer) int { return cmp.Compare(b.weight, a.weight) })
		all = all[:rows]
		slices.SortFunc(all, func(a, b answer) int { return cmp.Compare(a.place, b.place) })
	}
	d.Clear()
	for _, a := range all {
		d.Add(a.question, tokens[a.place*l.Tokens:][:lengths[a.place]], -1, a.weight/float32(f.Batch.Rows()))
	}
	return out, nil
}
