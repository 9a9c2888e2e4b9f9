package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
)

// localLosses are one of each loss over words and patches.
func localLosses() map[string]Loss {
	return map[string]Loss{
		"word_patch":      &WordPatch{Weighted: section.Weigh(1), Temperature: .1, ContextTemperature: .1, AttentionScale: 1},
		"token_image":     &TokenImage{Weighted: section.Weigh(1), Margin: .5},
		"text_swap":       &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: 1, Images: true, Recompute: true},
		"text_swap batch": &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: 1, Attention: "batch", Images: true},
	}
}

// TestLocalLossesOfNothing: in a batch of one nothing is told from anything, captions without a word have no tokens, and where no
// text is swapped there is no item: the losses are 0, or the chance where all scores are equal, and gradients are finite.
func TestLocalLossesOfNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(92, 1))
	const c = 5
	for name, l := range localLosses() {
		for _, rows := range []int{1, 4} {
			x := localRows{"patches": unitRows(r, rows*4, c), "words": unitRows(r, rows*3, c), "image": unitRows(r, rows, c), "text": unitRows(r, rows, c)}
			lengths := slices.Repeat([]int32{2}, rows) // no word
			leaves := []string{"patches", "words"}
			want := float32(0)
			switch name {
			case "word_patch":
				want = float32(2 * math.Log(float64(rows)))
			case "token_image":
				leaves = []string{"words", "image"}
			case "text_swap":
				leaves = []string{"image", "text"}
			case "text_swap batch":
				lengths, leaves = slices.Repeat([]int32{3}, rows), []string{"image", "text"}
			}
			s := newLocalStep(t, x, rows, c, lengths, nil)
			loss, grads := s.run(l.Build(s.Step), nil, leaves...)
			swaps := rows > 1 && (name == "text_swap" || name == "text_swap batch")
			if !swaps && loss != want || loss != loss {
				t.Errorf("%s of %d: got %v, want %v", name, rows, loss, want)
			}
			for i, g := range grads {
				for _, v := range g {
					if v-v != 0 || !swaps && v != 0 {
						t.Errorf("%s of %d: gradient of %s %v", name, rows, leaves[i], g)
						break
					}
				}
			}
		}
	}
	x := localRows{"patches": unitRows(r, 8, c), "words": unitRows(r, 8, c), "image": unitRows(r, 2, c), "text": unitRows(r, 2, c)}
	s := newLocalStep(t, x, 2, c, []int32{4, 4}, nil)
	if loss, grads := s.run((&TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5}).Build(s.Step), nil, "text"); loss != 0 || slices.ContainsFunc(grads[0], func(v float32) bool { return v != 0 }) {
		t.Errorf("without a swap the loss is %v and the gradient %v", loss, grads)
	}
}

// TestLocalLossesOfZeros: states and features of zeros give the chance of each loss, and nothing that is not a number.
func TestLocalLossesOfZeros(t *testing.T) {
	const rows, c = 4, 5
	for name, l := range localLosses() {
		x := localRows{"patches": make([]float32, rows*4*c), "words": make([]float32, rows*6*c), "image": make([]float32, rows*c), "text": make([]float32, rows*c)}
		s := newLocalStep(t, x, rows, c, []int32{6, 3, 4, 5}, nil)
		parts := l.Build(s.Step)
		leaves := map[string][]string{"word_patch": {"patches", "words"}, "token_image": {"words", "image"}}[name]
		loss, grads := s.run(parts, nil, leaves...)
		if d := float64(loss) - parts[0].Chance; !(math.Abs(d) < 1e-5) {
			t.Errorf("%s: got %v, the chance is %v", name, loss, parts[0].Chance)
		}
		for i, g := range grads {
			for _, v := range g {
				if v-v != 0 {
					t.Errorf("%s: gradient of %s %v", name, leaves[i], g)
					break
				}
			}
		}
	}
}

// TestLocalLossesNeedTokens: without the tokens of a side, or a head that maps them, the error names the loss.
func TestLocalLossesNeedTokens(t *testing.T) {
	for name, l := range map[string]Loss{"word_patch": &WordPatch{Weighted: section.Weigh(1)}, "token_image": &TokenImage{Weighted: section.Weigh(1)}, "text_swap": &TextSwap{Weighted: section.Weigh(1)}} {
		for _, change := range []func(x *Side){func(x *Side) { x.Tokens = nil }, func(x *Side) { x.Head = nil }} {
			x := localRows{"patches": make([]float32, 24), "words": make([]float32, 24), "image": make([]float32, 6), "text": make([]float32, 6)}
			s := newLocalStep(t, x, 2, 3, []int32{4, 4}, nil)
			change(&s.Online.Text)
			err := func() (err error) {
				defer op.Catch(&err)
				l.Build(s.Step)
				return nil
			}()
			if err == nil || !strings.Contains(err.Error(), name+": needs towers of tokens, with a head that maps each of them") {
				t.Errorf("%s: got error %v", name, err)
			}
		}
	}
}

// TestUnitRows: rows of several spheres and those of any length have the length 1, unit vectors of one sphere are taken as they are.
func TestUnitRows(t *testing.T) {
	b := newBench(t)
	x := b.floats("x", []float32{3, 4, 0, 12, 0, 0, 8, 6}, 2, 4)
	for _, sp := range []space.Space{{Dim: 4, Spheres: 2}, {Dim: 4, Spheres: 1, Euclid: true}} {
		s := &Step{Scores: Scores{Space: sp}}
		want := []float32{3. / 13, 4. / 13, 0, 12. / 13, 0, 0, .8, .6}
		nearGolden(t, "rows", b.run(s.unit(x))[0].F32, want)
	}
	if s := (&Step{Scores: Scores{Space: space.Space{Dim: 4, Spheres: 1}}}); s.unit(x) != x {
		t.Error("unit vectors are made anew")
	}
}

// TestLocalDraws: what is drawn depends on the seed and the place of the step in the run alone, and every loss and side has draws of its own.
func TestLocalDraws(t *testing.T) {
	const rows, c = 40, 3
	draw := func(seed uint64, counter int) (list [][]int32) {
		r := rand.New(rand.NewPCG(92, 2))
		x := localRows{"patches": unitRows(r, rows*2, c), "words": unitRows(r, rows*3, c), "image": unitRows(r, rows, c), "text": unitRows(r, rows, c)}
		s := newLocalStep(t, x, rows, c, slices.Repeat([]int32{3}, rows), nil)
		s.Seed = seed
		losses := localLosses()
		losses["token_image"].Build(s.Step)
		losses["text_swap"].Build(s.Step)
		m := s.b.compile(s.Inputs.Node("text_swap texts"))
		check.OK(t, s.Inputs.Fill(m, &feed.Step{Batch: s.batch, Counter: counter}))
		for _, name := range []string{"token_image negatives", "text_swap texts", "text_swap images"} {
			list = append(list, s.Inputs.Memory(name).([]int32))
		}
		return list
	}
	seen := draw(1, 7)
	for i, again := range draw(1, 7) {
		if !slices.Equal(again, seen[i]) {
			t.Errorf("draw %d is %v, and again %v", i, seen[i], again)
		}
	}
	for _, other := range [][][]int32{draw(1, 8), draw(2, 7)} {
		seen = append(seen, other...)
	}
	for i, a := range seen {
		for _, b := range seen[:i] {
			if slices.Equal(a, b) {
				t.Errorf("two draws are %v", a)
			}
		}
	}
}
