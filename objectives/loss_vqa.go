package objectives

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"gorgonia.org/gorgonia"
)

// VQA is the loss of a decoder that writes the answers to a question about an image from the states of the fusion
// layers (ALBEF, Li et al. 2021, section 4, and its published code):
//
//	L = 1/B sum_i sum_a w_ia sum_t (1-alpha) CE(token t+1) + alpha H(teacher, token t+1)
//
// over the questions i of a batch, their answers a of weight w_ia, and the tokens of an answer but the last. The
// teacher is the momentum copies of the towers, the fusion layers and the decoder. The states of a question are
// computed once, however many answers it has.
type VQA struct {
	Weight  float64
	Decoder encoders.Decoder
	Answers int     // A, places of answers of a question in the batch
	Len     int     // L, token places of an answer
	Rows    float64 // answers that there is room for, for a question on average; 0: for all A
}

var _ Preparer = VQA{}

// Columns are those of the answers.
func (l VQA) Columns() []batch.Column {
	return []batch.Column{
		{Name: batch.Answers, Shape: []int{l.Answers, l.Len}, Type: batch.Int32},
		{Name: batch.AnswerLengths, Shape: []int{l.Answers}, Type: batch.Int32},
		{Name: batch.AnswerWeights, Shape: []int{l.Answers}},
	}
}

// Prepare implements Preparer.
func (l VQA) Prepare(s *Step) {
	Need(s.Fusion != nil, "vqa", "this system has no fusion layers, whose states the decoder reads")
	for _, r := range s.distilled() {
		r.Image.Tokens, r.Text.Tokens = true, true
	}
	s.Read(l.Columns()...)
}

// distilled are what losses read online and, where there are soft targets, of the teacher.
func (s *Step) distilled() []*SideReads {
	if s.Alpha() == nil {
		return []*SideReads{&s.Reads.Online}
	}
	return []*SideReads{&s.Reads.Online, &s.Reads.Teacher}
}

// room is how many answers of a batch take part at most.
func (l VQA) room(questions int) int {
	if l.Rows == 0 {
		return questions * l.Answers
	}
	return min(questions*l.Answers, max(1, int(math.Ceil(float64(questions)*l.Rows))))
}

// Build implements Loss.
func (l VQA) Build(s *Step) []Part {
	rows := l.room(s.Rows)
	d := newDictation("answer", rows, l.Len)
	out := 0
	var counts []int32
	s.OnFill(func(f *feed.Step) (err error) {
		if out, err = l.fill(f, d, rows); err != nil || s.Ranks.size() == 1 {
			return err
		}
		if counts, err = s.Ranks.Group.GatherInts(counts[:0], []int32{int32(d.rows)}); err != nil {
			return err
		}
		first := 0
		for _, n := range counts[:s.Ranks.rank()] {
			first += int(n)
		}
		d.number(first)
		return nil
	})
	f := s.Fusion
	lengths := s.Captions.Clean[batch.Lengths]
	states := func(c *encoders.Context, p encoders.Scope, x Sides) *gorgonia.Node {
		return f.Fusion(c, p, encoders.FusionArgs{Texts: x.Text.Tokens, Lengths: lengths, Images: x.Image.Tokens,
			TextLen: f.TextLen, ImageLen: f.ImageLen})
	}
	x := told{Online: states(s.Student, f.Params, s.Online), Lengths: lengths, Len: f.TextLen} // (B*L, D)
	if s.Alpha() != nil {
		x.Teacher = states(s.TeacherContext, f.MomentumParams, s.Teacher)
	}
	parts := []Part{s.Part("vqa", l.Weight, d.loss(s, l.Decoder, x))}
	if rows < s.Rows*l.Answers {
		left := s.Floats("answers left out",
			func(_ *feed.Step, dst []float32) error { dst[0] = float32(out * s.Ranks.size()); return nil })
		parts = append(parts, Part{Name: "vqa_left_out", Node: arith.Times(1, left), Measure: true})
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
func (l VQA) fill(f *feed.Step, d *dictation, rows int) (out int, err error) {
	tokens, lengths, weights := f.Batch.Ints(batch.Answers), f.Batch.Ints(batch.AnswerLengths),
		f.Batch.Floats(batch.AnswerWeights)
	var all []answer
	for i, w := range weights {
		if w == 0 {
			continue
		}
		if n := lengths[i]; n < 2 || int(n) > l.Len {
			return 0, fmt.Errorf("objectives: vqa: answer %d of question %d of the batch has %d tokens: want 2 to %d, the first and the last of which stand around it", i%l.Answers, i/l.Answers, n, l.Len)
		}
		all = append(all, answer{i / l.Answers, i, w})
	}
	if out = max(0, len(all)-rows); out > 0 {
		slices.SortStableFunc(all, func(a, b answer) int { return cmp.Compare(b.weight, a.weight) })
		all = all[:rows]
		slices.SortFunc(all, func(a, b answer) int { return cmp.Compare(a.place, b.place) })
	}
	d.clear()
	for _, a := range all {
		d.add(a.question, tokens[a.place*l.Len:][:lengths[a.place]], -1, a.weight/float32(f.Batch.Rows()))
	}
	return out, nil
}
