package train

import (
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
)

// ratesOf is what TestRatesOf expects at factor f and decay d of towers with two blocks, and one text and one
// fusion layer.
func ratesOf(f, d float64) map[string]float64 {
	return map[string]float64{
		"image/patch_embed/weight": f * d * d * d, "image/cls_token": f * d * d * d, "image/pos_embed": f * d * d * d,
		"image/blocks/00/attn/qkv/weight": f * d * d, "image/blocks/01/mlp/fc1/bias": f * d, "image/norm/weight": f, "image/pool/mlp/fc1/weight": f,
		"text/embeddings/word/weight": f * d * d * d, "text/layers/00/ffn/norm/bias": f * d * d, "text/layers/01/attention/qkv/weight": f * d,
		"text/relative/weight": f * d * d * d, "text/norm/bias": f, "text/pool/weight": f, "text/pooler/weight": f,
		"text/layers/01/crossattention/kv/weight": 1, "text/mlm/dense/weight": 1, "text/mlm/bias": 1,
		"image_proj/weight": 1, "text_proj/bias": 1, "itm_head/weight": 1, "temperature": 1,
	}
}

func TestRatesOf(t *testing.T) {
	c := config.Default()
	c.Model.Image.Depth, c.Model.Text.Layers, c.Model.Text.FusionLayers = 2, 1, 1
	for _, x := range [][2]float64{{1, 1}, {0.5, 1}, {0.5, 0.75}} {
		c.Init.Image.LRFactor, c.Init.Image.LayerDecay = x[0], x[1]
		c.Init.Text.LRFactor, c.Init.Text.LayerDecay = x[0], x[1]
		for name, want := range ratesOf(x[0], x[1]) {
			if got := NewRates(c).Of(name); !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%v: %s has %v, want %v", x, name, got, want)
			}
		}
	}
	if s := NewRates(c).String(); s != "image tower 0.211 (embeddings) to 0.375 (last block), text tower 0.211 (embeddings) to 0.375 (last block)" {
		t.Error(s)
	}
	if c.Init.Image.LayerDecay = 1e-200; NewRates(c).Of("image/cls_token") == 0 { // which an optimiser takes for 1
		t.Error("a decay that float64 does not hold is a rate of 0")
	}
	c.Model.Image.Freeze, c.Init.Text.LayerDecay, c.Init.Text.LRFactor = true, 1, 0.1
	if s := NewRates(c).String(); s != "text tower 0.1" {
		t.Error(s)
	}
	c.Model.Image.Freeze, c.Model.Image.Style, c.Model.Image.Depth, c.Init.Image = false, encoders.StyleRegions, 0, config.InitImage{LRFactor: .5, LayerDecay: .75}
	for _, name := range []string{"image/fc/weight", "image/graph/01/theta/weight", "image/pool/weight_hh"} {
		if got := NewRates(c).Of(name); got != .5 {
			t.Errorf("%s of a tower of regions has %v", name, got)
		}
	}
	c.Model.Image.Style = encoders.StyleResNet
	for _, name := range []string{"image/conv1/weight", "image/layer4/02/bn3/bias"} {
		if got := NewRates(c).Of(name); got != .5 {
			t.Errorf("%s of a residual network has %v", name, got)
		}
	}
	if s := NewRates(config.Default()).String(); s != "" {
		t.Error(s)
	}
}

// slow are settings by which towers learn at rates of their own.
var slow = []string{"init.image.lr_factor=0.5", "init.image.layer_decay=0.75", "init.text.layer_decay=0.5"}

// Without gradients an update is weight decay alone, by the rate of each parameter.
func TestRatesOfAnUpdate(t *testing.T) {
	s := small(t, 0, 0, slow...)
	p, m := s.pairs().Params(), s.cfg.Model
	for i := range p.Values() {
		p.Values()[i] = 1
	}
	clear(p.Grads())
	s.optimizer.Step(.5, 1, 0)
	seen := map[float64]bool{}
	for _, q := range p.List() {
		v := p.Value(q)[0]
		if v == 1 { // no weight decay
			continue
		}
		layers, power := strings.Split(q.Name, "/"), 0.
		rate := 1.
		switch {
		case strings.Contains(q.Name, "crossattention") || strings.Contains(q.Name, "mlm"):
		case layers[0] == "image":
			rate, power = .5, float64(m.Image.Depth+1)
			if layers[1] == "blocks" {
				power = float64(m.Image.Depth - int(layers[2][1]-'0'))
			}
			rate *= math.Pow(.75, power)
		case layers[0] == "text":
			depth := m.Text.Layers + m.Text.FusionLayers
			power = float64(depth + 1)
			if layers[1] == "layers" {
				power = float64(depth - int(layers[2][1]-'0'))
			}
			rate = math.Pow(.5, power)
		}
		seen[rate] = true
		if want := 1 - .5*rate*s.cfg.Optimizer.Decay; !(math.Abs(float64(v)-want) <= 1e-6) {
			t.Errorf("%s is %v, want %v", path.Clean(q.Name), v, want)
		}
	}
	if len(seen) < 5 {
		t.Errorf("the rates are %v, so the test shows little", slices.Sorted(maps.Keys(seen)))
	}
}

// A run with rates that goes on has the bits of one that was never stopped, and its log has them.
func TestRatesResume(t *testing.T) {
	whole := small(t, 0, 0, slow...)
	for i := range 4 {
		whole.must(t, i)
	}
	first := small(t, 0, 0, slow...)
	for i := range 2 {
		first.must(t, i)
	}
	c := first.save(t, t.TempDir(), 2)
	rest := small(t, 0, 0, slow...)
	check.Get(rest.Restore(c))(t)
	for i := 2; i < 4; i++ {
		x := check.Get(rest.Step(t.Context(), i))(t)
		want := []Value{{"lr/image", x.LR * .5 * .75, true}, {"lr/text", x.LR * .5, true}}
		if !slices.Equal(x.TowerLR, want) {
			t.Errorf("rates %v, want %v", x.TowerLR, want)
		}
	}
	for name, v := range whole.memory() {
		if !slices.Equal(v, rest.memory()[name]) {
			t.Errorf("%s differs after a resume", name)
		}
	}
	plain := small(t, 0, 0)
	x, err := plain.Step(t.Context(), 0)
	if err != nil || len(x.TowerLR) != 0 {
		t.Errorf("a run without rates logs %v %v", x.TowerLR, err)
	}
}
