package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/check"
)

// onePair is row i of the images and texts of a golden, as a batch.
func onePair(m *Trainer, g golden, i int) *batch.Batch {
	b := batch.New(1, append(m.Image().Columns(), m.Text().Columns()...)...)
	row, l := g.floats("input/images"), m.cfg.Data.Tokens
	n := len(b.Floats(batch.Images))
	copy(b.Floats(batch.Images), row[i*n:])
	copy(b.Ints(batch.Tokens), g.ints("input/tokens")[i*l:][:l])
	b.Ints(batch.Lengths)[0] = g.ints("input/lengths")[i]
	return b
}

// explainedAs compares values with wanted ones to 1e-4 of the largest.
func explainedAs(t *testing.T, what string, got []float64, want []float32) {
	t.Helper()
	most, off := 0.0, 0.0
	for i, w := range want {
		if i >= len(got) {
			t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
		}
		most, off = max(most, math.Abs(float64(w))), max(off, math.Abs(got[i]-float64(w)))
	}
	if !(off <= 1e-4*most) || most == 0 {
		t.Errorf("%s differs by %.1e, of at most %.1e:\n%v\n%v", what, off, most, got, want)
	}
}

// TestGoldenExplain compares Grad-CAM of whole scores and of single class tokens and spheres, at every
// block of both towers, with an independent PyTorch model of the same weights.
func TestGoldenExplain(t *testing.T) {
	for mode, topology := range map[string]string{"multi": "Multi(2,4)", "oblique": "Ob(4,2)", "sphere": "sphere", "euclid": "euclid"} {
		t.Run(mode, func(t *testing.T) {
			m, g := buildCLIP(t, tinyCLIP(topology)), openGolden(t, "clip_"+mode)
			for _, q := range m.params.List() {
				copy(m.params.Value(q), g.floats("param/"+q.Name))
			}
			want := openGolden(t, "explain_"+mode)
			checked := 0
			for _, info := range want.f.Tensors() {
				var row, group, layer int
				name, score := strings.CutSuffix(info.Name, "/score")
				parts := strings.Split(name, "/")
				if !score {
					fmt.Sscan(parts[2], &layer)
				}
				fmt.Sscan(parts[0], &row)
				x, err := (*Explained)(nil), error(nil)
				b, at := onePair(m, g, row), Blocks{Image: layer, Text: layer}
				if parts[1] == "pair" {
					x, err = m.Explainer().Pair(t.Context(), b, at)
				} else {
					fmt.Sscanf(parts[1], "group%d", &group)
					x, err = m.Explainer().Group(t.Context(), b, at, group)
				}
				if err != nil {
					t.Fatal(err)
				}
				checked++
				if score {
					closeTo(t, info.Name, []float32{float32(x.Score)}, want.floats(info.Name), 1e-5)
					continue
				}
				side := x.Image
				if parts[3] == "text" {
					side = x.Text
				}
				formulas := map[string]func(values, grads []float32, n, d int) []float64{"elementwise": explain.Elementwise, "channels": explain.Channels, "pooled": explain.Pooled}
				explainedAs(t, info.Name, formulas[parts[4]](side.Values, side.Grads, side.N, side.D), want.floats(info.Name))
			}
			if checked < 3*(1+2*3) {
				t.Errorf("%d tensors compared", checked)
			}
		})
	}
}

// TestGoldenExplainMatch compares the relevance of patches for words, by the attention of each fusion
// layer and the gradient of the match head to it, with an independent PyTorch model.
func TestGoldenExplainMatch(t *testing.T) {
	m, _, g := loadGolden(t, "pair")
	want := openGolden(t, "explain_albef")
	for row := range 3 {
		b := onePair(m, g, row)
		for layer := range 2 {
			x := check.Get(m.Explainer().Match(t.Context(), b, Blocks{Fusion: layer}))(t)
			closeTo(t, "score", []float32{float32(x.Score)}, want.floats(fmt.Sprintf("%d/match/score", row)), 1e-5)
			c := x.Cross
			got := explain.Attention{H: c.Heads, L: c.L, T: c.T, D: c.D, Queries: c.Queries, KeyValues: c.KeyValues, Grad: c.Grads}.Relevance()
			explainedAs(t, fmt.Sprintf("row %d, layer %d", row, layer), got, want.floats(fmt.Sprintf("%d/match/%d", row, layer)))
		}
	}
}

// nudged returns the derivative of a score to element k of a parameter, by central differences.
func nudged(t *testing.T, m *Trainer, name string, k int, score func() float64) float64 {
	t.Helper()
	q, ok := m.params.Get(name)
	if !ok {
		t.Fatalf("no parameter %s", name)
	}
	const h = 5e-3
	v := m.params.Value(q)
	was := v[k]
	v[k] = was + h
	up := score()
	v[k] = was - h
	down := score()
	v[k] = was
	return (up - down) / (2 * h)
}

// TestExplainGradients compares gradients to tokens with finite differences: all tokens share the bias
// of the norm before the attention that reads them, so the derivative to it is the sum of their
// gradients.
func TestExplainGradients(t *testing.T) {
	for _, topology := range []string{"sphere", "Multi(2,4)", "euclid"} {
		cfg := tinyCLIP(topology)
		if topology == "Multi(2,4)" {
			cfg.Model.Head.TokenBlocks = 1
		}
		m := buildCLIP(t, cfg)
		x := randomPairs(m, 5)
		b := batch.New(1, append(m.Image().Columns(), m.Text().Columns()...)...)
		copy(b.Floats(batch.Images), x.Images)
		l := copy(b.Ints(batch.Tokens), x.Tokens[:cfg.Data.Tokens])
		b.Ints(batch.Lengths)[0] = int32(l)
		score := func() float64 {
			return check.Get(m.Explainer().Pair(t.Context(), b, Blocks{1, 1, 0}))(t).Score
		}
		for k := range 5 {
			e := check.Get(m.explainer.pairs.get(explainKey{"pair", Blocks{1, 1, 0}}))(t)
			score()
			for _, side := range []struct {
				bias string
				tap  tapped
			}{{"image/blocks/01/norm1/bias", e.image}, {"text/layers/00/ffn/norm/bias", e.text}} {
				a := check.Get(e.machine.Value(side.tap.grad))(t)
				rows, d, sum := side.tap.grad.Shape()[0], side.tap.grad.Shape()[1], 0.0
				for i := range rows {
					sum += float64(a.F32[i*d+k])
				}
				// Class tokens of texts that come late have not passed the norm before.
				if topology == "Multi(2,4)" && side.tap == e.text {
					m := m.design.space.Groups() - 1
					for i := 1; i <= m; i++ {
						sum -= float64(a.F32[i*d+k])
					}
				}
				got := nudged(t, m, side.bias, k, score)
				score()
				if !(math.Abs(got-sum) <= 2e-3*max(0.05, math.Abs(sum))) {
					t.Errorf("%s: sum of gradients %.5f, by differences %.5f to %s[%d]", topology, sum, got, side.bias, k)
				}
			}
		}
	}
}

// TestExplainMatchGradients: the gradient to a gathered value by finite differences, through the bias
// of the values, which every token of the image has.
func TestExplainMatchGradients(t *testing.T) {
	m, _, g := loadGolden(t, "pair")
	b := onePair(m, g, 0)
	run := func() *Explained {
		return check.Get(m.Explainer().Match(t.Context(), b, Blocks{Fusion: 1}))(t)
	}
	c := run().Cross
	for k := range 6 {
		sum := 0.0
		for l := range c.L {
			sum += float64(c.Grads[l*c.D+k])
		}
		got := nudged(t, m, "text/layers/03/crossattention/kv/bias", c.D+k, func() float64 { return run().Score })
		c = run().Cross
		if !(math.Abs(got-sum) <= 2e-3*max(0.05, math.Abs(sum))) {
			t.Errorf("channel %d: sum of gradients %.5f, by differences %.5f", k, sum, got)
		}
	}
}

// TestExplainRefuses: systems without patches and words, blocks, class tokens and match heads that
// there are none of, by their names.
func TestExplainRefuses(t *testing.T) {
	m := buildCLIP(t, tinyCLIP("Multi(2,4)"))
	b := batch.New(1, append(m.Image().Columns(), m.Text().Columns()...)...)
	b.Ints(batch.Lengths)[0] = 1
	at := m.Explainer().DefaultBlocks()
	if at != (Blocks{1, 1, 0}) {
		t.Errorf("default blocks %v", at)
	}
	wants := func(err error, want string) {
		t.Helper()
		check.Error(t, err, want)
	}
	_, err := m.Explainer().Pair(t.Context(), b, Blocks{2, 1, 0})
	wants(err, "no block of the image tower 2: the model has 2")
	_, err = m.Explainer().Pair(t.Context(), b, Blocks{0, -1, 0})
	wants(err, "no layer of the text tower -1")
	_, err = m.Explainer().Group(t.Context(), b, at, 4)
	wants(err, "no class token or sphere 4")
	_, err = m.Explainer().Match(t.Context(), b, at)
	wants(err, "no match head")
	_, err = m.Explainer().Pair(t.Context(), batch.New(2, b.Columns()...), at)
	wants(err, "one row")

	cfg := config.Default()
	cfg.Model.System, cfg.Momentum.Enabled, cfg.Queue.Size = "heads", false, 0
	cfg.Model.Heads.InImage, cfg.Model.Heads.InText, cfg.Model.Heads.Hidden = 4, 4, 4
	cfg.Model.Head.Dim, cfg.Train.BatchSize = 4, 4
	cfg.Objective.ITC.Weight, cfg.Objective.ITM.Weight, cfg.Objective.MLM.Weight, cfg.Objective.ITC.InBatchWeight = 0, 0, 0, 1
	h := newTrainer(t, cfg, Options{Engine: newEngine(t)})
	wants(h.Explainer().Check(), `model.system "heads" has a tower without patches or words`)
	_, err = h.Explainer().Pair(t.Context(), b, at)
	wants(err, `model.system "heads"`)
}

// TestExplainStyles: every structure of a tower has a block to explain by default, with as many tokens
// as it has patches or places and gradients that are not all 0.
func TestExplainStyles(t *testing.T) {
	for name, change := range map[string]func(m *config.Model){
		"vit mean": func(m *config.Model) {
			m.Image.Style, m.Image.Pool, m.Text.Style, m.Text.Pool = "vit", "mean", "bert", "mean"
		},
		"dinov2 mean": func(m *config.Model) {
			m.Image.Style, m.Image.Pool, m.Image.Registers = "dinov2", "mean", 2
			m.Text.Style = "roberta"
		},
		"siglip":    func(m *config.Model) { m.Image.Style, m.Text.Style = "siglip", "siglip" },
		"clip":      func(m *config.Model) { m.Image.Style, m.Text.Style = "clip", "clip" },
		"clip mean": func(m *config.Model) { m.Image.Style, m.Text.Style, m.Text.Pool = "clip", "clip", "mean" },
		"mpnet":     func(m *config.Model) { m.Image.Style, m.Text.Style, m.Image.Registers = "deit", "mpnet", 1 },
	} {
		cfg := tinyCLIP("sphere")
		change(&cfg.Model)
		m := buildCLIP(t, cfg)
		x := randomPairs(m, 5)
		b := batch.New(1, append(m.Image().Columns(), m.Text().Columns()...)...)
		copy(b.Floats(batch.Images), x.Images)
		copy(b.Ints(batch.Tokens), x.Tokens[:cfg.Data.Tokens])
		b.Ints(batch.Lengths)[0] = x.Lengths[0]
		for _, at := range []Blocks{{}, m.Explainer().DefaultBlocks()} {
			e, err := m.Explainer().Pair(t.Context(), b, at)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for side, s := range map[string]*States{"image": e.Image, "text": e.Text} {
				want := map[string]int{"image": 4, "text": cfg.Data.Tokens}[side]
				sum := 0.0
				for _, v := range explain.Channels(s.Values, s.Grads, s.N, s.D) {
					sum += v
				}
				if s.N != want || len(s.Values) != s.N*s.D || len(s.Grads) != s.N*s.D || !(sum > 0) {
					t.Errorf("%s, %s at %v: %d tokens of %d, worth %v", name, side, at, s.N, want, sum)
				}
			}
		}
		if mean := strings.Contains(name, "mean") || name == "siglip"; name != "clip mean" && (m.Explainer().DefaultBlocks().Image == 2) != mean {
			t.Errorf("%s: default blocks %v", name, m.Explainer().DefaultBlocks())
		}
	}
}

// TestExplainPools: a text tower that pools tokens has these as its last place, whichever pool it is, with gradients
// that are not all 0.
func TestExplainPools(t *testing.T) {
	for _, pool := range []string{"mean", "max", "gpo", "esa"} {
		cfg := tinyHost("vseinf")
		cfg.Model.Image.Size, cfg.Model.Text.Pool = 16, pool // the size is of the pictures, which no tower reads
		m := buildCLIP(t, cfg)
		at := m.Explainer().DefaultBlocks()
		if at.Text != cfg.Model.Text.Layers {
			t.Errorf("%s: default blocks %v", pool, at)
			continue
		}
		e := check.Get(m.Explainer().Pair(t.Context(), randomPair(m, 3, 5), at))(t)
		if s := e.Text; s.D != cfg.Model.Text.Width || !slices.ContainsFunc(s.Grads, func(g float32) bool { return g != 0 }) {
			t.Errorf("%s: %d tokens of %d channels", pool, s.N, s.D)
		}
	}
}
