package objectives

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// TestMCSE compares the loss over two passes that differ with its definition, and its gradients with finite differences, for pairs alone
// and for batches some rows of which have no image: these search nothing, and nothing finds what stands instead of their image.
func TestMCSE(t *testing.T) {
	const b, c, tau = 4, 5, 0.3
	for name, paired := range map[string][]int32{"pairs": nil, "some": {1, 0, 1, 1}, "none": {0, 0, 0, 0}} {
		r := rand.New(rand.NewPCG(5, 1))
		first, second, images := unitRows(r, b, c), unitRows(r, b, c), unitRows(r, b, c)
		n := newBench(t)
		x, y, v := n.floats("first", first, b, c), n.floats("second", second, b, c), n.floats("images", images, b, c)
		s := &Step{Inputs: feed.New(n.g), Rows: b, Student: &encoders.Context{}}
		s.Online.Text = Side{Sequence: encoders.Sequence{Classes: x}, Behind: y, Head: encoders.Projection{Space: space.Space{Dim: c}, Identity: true}}
		s.Online.Image.Features = v
		l := &MCSE{Weighted: section.Weigh(2), Temperature: tau}
		if paired != nil {
			s.Config = section.NewView(nil, nil, section.Facts{Held: map[section.Fact]bool{section.Mixed: true}})
		}
		l.Prepare(s)
		parts := l.Build(s)
		grads := check.Get(gorgonia.Grad(parts[0].Node, x, y, v))(t)
		m := n.compile(append(gorgonia.Nodes{parts[0].Node}, grads...)...)
		check.OK(t, s.Inputs.Bind(m))
		x32 := batch.New(b, s.Inputs.Columns()...)
		copy(x32.Ints(batch.Paired), paired)
		check.OK(t, s.Inputs.Fill(m, &feed.Step{Batch: x32}))
		check.OK(t, m.RunAll())
		hard := diagonal(b, b)
		rows := b
		for i, p := range paired {
			if p == 0 {
				hard[i], rows = nil, rows-1
			}
		}
		want := func() float64 {
			if rows == 0 {
				return 0
			}
			// Rows are no longer unit vectors once a difference is added.
			unit := func(x []float32) []float32 { return normalized(x, c) }
			pass := func(x []float32) float64 {
				logits := scores(unit(x), images, c, tau)
				for _, row := range logits {
					for j, p := range paired {
						if p == 0 {
							row[j] = -1e9
						}
					}
				}
				return softLoss(logits, hard, nil, 0)
			}
			return (pass(first) + pass(second)) / 2
		}
		got := check.Get(m.Scalar(parts[0].Node))(t)
		near(t, name, float64(got), want(), 1e-5)
		for i, values := range [][]float32{first, second, images} {
			g := check.Get(m.Value(grads[i]))(t)
			nearAll(t, name+": gradient", slices.Clone(g.F32), fdGrad(values, want), 2e-3)
		}
		if parts[0].Weight != 2 || parts[1].Name != "mcse_accuracy" || !parts[1].Measure {
			t.Errorf("parts %+v", parts)
		}
	}
}

// TestMCSEComparesByTheCosine: features of a Euclidean space have any length, and the loss is that of their directions.
func TestMCSEComparesByTheCosine(t *testing.T) {
	const b, c, tau = 4, 5, 0.3
	r := rand.New(rand.NewPCG(5, 2))
	texts, behind, images := unitRows(r, b, c), unitRows(r, b, c), unitRows(r, b, c)
	want := (softLoss(scores(texts, images, c, tau), diagonal(b, b), nil, 0) + softLoss(scores(behind, images, c, tau), diagonal(b, b), nil, 0)) / 2
	for k, rows := range [][]float32{texts, behind, images} {
		for i := range rows {
			rows[i] *= float32(1 + k + i/c)
		}
	}
	n, euclid := newBench(t), space.Space{Dim: c, Euclid: true}
	s := &Step{Inputs: feed.New(n.g), Rows: b, Student: &encoders.Context{}, Scores: Scores{Space: euclid}}
	s.Online.Text = Side{Sequence: encoders.Sequence{Classes: n.floats("texts", texts, b, c)}, Behind: n.floats("behind", behind, b, c), Head: encoders.Projection{Space: euclid, Identity: true}}
	s.Online.Image.Features = n.floats("images", images, b, c)
	loss := (&MCSE{Weighted: section.Weigh(1), Temperature: tau}).Build(s)[0].Node
	m := n.compile(loss)
	check.OK(t, errors.Join(s.Inputs.Bind(m), m.RunAll()))
	got := check.Get(m.Scalar(loss))(t)
	near(t, "loss", float64(got), want, 1e-5)
}

// normalized are rows of c channels as unit vectors.
func normalized(x []float32, c int) []float32 {
	y := slices.Clone(x)
	for i := range len(x) / c {
		scoring.Normalize(y[i*c : (i+1)*c])
	}
	return y
}

// TestSentencesNeedTexts: without a second pass of the texts the error names the loss.
func TestSentencesNeedTexts(t *testing.T) {
	for name, l := range map[string]Loss{"simcse": &SimCSE{Weighted: section.Weigh(1), Temperature: 1}, "mcse": &MCSE{Weighted: section.Weigh(1), Temperature: 1}} {
		err := func() (err error) {
			defer op.Catch(&err)
			l.Build(&Step{Rows: 2})
			return nil
		}()
		if err == nil || !strings.HasPrefix(err.Error(), name+": needs a text tower that reads the texts twice") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
