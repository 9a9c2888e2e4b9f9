package encoders

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// TestDualEncoderOptions: the towers of clip-mtob have the parameters of ALBEF's but for
// the bias of patches and the token type, and the norms before the first block and behind
// the text layers; and they start as those of clip-mtob's code and PyTorch do.
func TestDualEncoderOptions(t *testing.T) {
	build := func(v ViT, b BERT, p Projection) *store {
		s := newStore(0)
		on := NewScope(s)
		p.Forward(on.In("image_proj"), v.Class(on.In("image"), s.floats("x", 2, 3, 32, 32)), p.Classes())
		_, y := b.TextClasses(&Context{}, on.In("text"), TextArgs{IDs: s.ints("ids", 2*tokens), Lengths: s.ints("lengths", 2), Len: tokens}, false)
		p.Forward(on.In("text_proj"), y, p.Classes())
		return s
	}
	v := ViT{ImageOptions: ImageOptions{Size: 32, Patch: 8, Depth: 2, Width: 64, Heads: 2}, Classes: 4}
	b := BERT{TextOptions: TextOptions{Positions: 60, Layers: 2, Width: 64, Heads: 2}, Vocab: 300, Classes: 4}
	p := Projection{Space: space.Space{Dim: 64, Spheres: 4, Tokens: true}}
	plain := build(v, b, p)
	v.NoPatchBias, v.PreNorm, v.TorchStart, v.Eps = true, true, true, 1e-5
	b.NoTokenType, b.FinalNorm, b.TorchStart, b.Eps = true, true, true, 1e-5
	p.NoBias, p.Gaussian = true, true
	dual := build(v, b, p)
	var more, less []string
	for _, line := range dual.list() {
		if !slices.Contains(plain.list(), line) {
			more = append(more, line)
		}
	}
	for _, line := range plain.list() {
		if !slices.Contains(dual.list(), line) {
			less = append(less, line)
		}
	}
	if want := []string{"image/norm_pre/bias (64)", "image/norm_pre/weight (64)", "text/norm/bias (64)", "text/norm/weight (64)"}; !slices.Equal(more, want) {
		t.Errorf("further parameters %v, want %v", more, want)
	}
	if want := []string{"image/patch_embed/bias (64)", "image_proj/bias (16)", "text/embeddings/token_type/weight (2, 64)", "text_proj/bias (16)"}; !slices.Equal(less, want) {
		t.Errorf("parameters left out %v, want %v", less, want)
	}
	// Deviations: of U(+-a) it is a/sqrt(3). in is 64 but for patches, 192, and the second
	// layer of an MLP, 256.
	uniform := func(bound float64) float64 { return bound / math.Sqrt(3) }
	for name, want := range map[string]float64{
		"image/cls_token": 1. / 8, "image/pos_embed": 1. / 8,
		"image/patch_embed/weight":               uniform(1 / math.Sqrt(192)),
		"image/blocks/01/attn/qkv/weight":        uniform(math.Sqrt(6. / (64 + 192))),
		"image/blocks/01/attn/qkv/bias":          0,
		"image/blocks/01/attn/proj/weight":       uniform(1. / 8),
		"image/blocks/01/attn/proj/bias":         0,
		"image/blocks/01/mlp/fc1/bias":           uniform(1. / 8),
		"image/blocks/01/mlp/fc2/weight":         uniform(1. / 16),
		"text/embeddings/word/weight":            .02,
		"text/embeddings/position/weight":        .01,
		"text/layers/00/attention/qkv/weight":    uniform(math.Sqrt(6. / (64 + 192))),
		"text/layers/00/attention/output/bias":   0,
		"text/layers/00/ffn/intermediate/weight": uniform(1. / 8),
		"text/layers/00/ffn/output/bias":         uniform(1. / 16),
		"image_proj/weight":                      1. / 8,
		"text_proj/weight":                       1. / 8,
	} {
		x := dual.values[name]
		var sum float64
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		// Five deviations of the estimate, sigma/sqrt(2n).
		if got := math.Sqrt(sum / float64(len(x))); len(x) == 0 || !(math.Abs(got-want) <= 5*want/math.Sqrt(2*float64(len(x)))) {
			t.Errorf("%s starts with deviation %v, want %v", name, got, want)
		}
	}
}

// TestEpsOption: the epsilon reaches the norms.
func TestEpsOption(t *testing.T) {
	run := func(eps float64) []float32 {
		_, b := several(0)
		b.Eps, b.FinalNorm = eps, true
		return runText(t, b)
	}
	if d := distance(run(0), run(1e-12)); d != 0 {
		t.Errorf("the default is not 1e-12: results differ by %v", d)
	}
	if d := distance(run(0), run(.1)); d < 1e-3 {
		t.Errorf("another epsilon changes nothing but %v", d)
	}
	image := func(eps float64) []float32 {
		v, _ := several(0)
		v.Eps, v.PreNorm = eps, true
		s := newStore(.2)
		x := s.floats("x", 3, 3, 8, 8)
		images, _, _ := testBatch()
		return s.run(t, v.Class(NewScope(s), x), map[*gorgonia.Node]any{x: images})
	}
	if d := distance(image(0), image(1e-6)); d != 0 {
		t.Errorf("the default is not 1e-6: results differ by %v", d)
	}
	if d := distance(image(0), image(.1)); d < 1e-3 {
		t.Errorf("another epsilon changes nothing but %v", d)
	}
}

func runText(t *testing.T, b BERT) []float32 {
	t.Helper()
	_, ids, lengths := testBatch()
	s := newStore(.2)
	id, le := s.ints("ids", len(ids)), s.ints("lengths", 3)
	_, classes := b.TextClasses(&Context{}, NewScope(s), TextArgs{IDs: id, Lengths: le, Len: tokens}, false)
	return s.run(t, classes, map[*gorgonia.Node]any{id: ids, le: lengths})
}

// TestProjectionParameters: what Parameters returns is what Forward reads.
func TestProjectionParameters(t *testing.T) {
	for _, p := range []Projection{{Space: space.Space{Dim: 8}}, {Space: space.Space{Dim: 8, Spheres: 4}}, {Space: space.Space{Dim: 8, Spheres: 4, Tokens: true}}, {Space: space.Space{Dim: 8, Euclid: true}, NoBias: true}} {
		s := newStore(0)
		on := NewScope(s).In("proj")
		p.Forward(on, s.floats("x", 12, 6), 6)
		want := s.list()
		weight, bias := p.Parameters(on, 6)
		if weight != s.nodes["proj/weight"] || bias != s.nodes["proj/bias"] || !slices.Equal(s.list(), want) {
			t.Errorf("%+v: parameters %v and %v of %v", p, weight, bias, want)
		}
	}
}

func TestClassesMisuse(t *testing.T) {
	for _, c := range []struct {
		name, want string
		build      func(s *store, on Scope)
	}{
		{"more blocks than there are", "blocks at most 2", func(s *store, on Scope) {
			v := tinyViT
			v.Classes, v.TokenBlocks = 2, 3
			v.Class(on, s.floats("x", 2, 3, 8, 8))
		}},
		{"negative class tokens", "at least 0", func(s *store, on Scope) {
			v := tinyViT
			v.Classes = -1
			v.Class(on, s.floats("x", 2, 3, 8, 8))
		}},
		{"more layers than there are", "layers at most 2", func(s *store, on Scope) {
			b := tinyBERT
			b.Classes, b.TokenBlocks = 2, 3
			b.Text(&Context{}, on, TextArgs{IDs: s.ints("ids", 10), Lengths: s.ints("lengths", 2), Len: 5}, nil)
		}},
		{"positions for one class token", "at least 7 rows", func(s *store, on Scope) {
			b := tinyBERT
			b.Classes = 3
			b.TextClasses(&Context{}, on, TextArgs{IDs: s.ints("ids", 10), Lengths: s.ints("lengths", 2), Len: 5}, true)
		}},
		{"positions beside one class token", "at least 5 rows", func(s *store, on Scope) {
			b := tinyBERT
			b.Classes = 3
			b.Text(&Context{}, on, TextArgs{IDs: s.ints("ids", 10), Lengths: s.ints("lengths", 2), Len: 5}, nil)
		}},
		{"spheres do not divide", "3 spheres divide", func(s *store, on Scope) {
			Projection{Space: space.Space{Dim: 8, Spheres: 3}}.Forward(on, s.floats("x", 4, 6), 1)
		}},
		{"Euclidean spheres", "no spheres in a Euclidean space", func(s *store, on Scope) {
			Projection{Space: space.Space{Dim: 8, Spheres: 2, Euclid: true}}.Forward(on, s.floats("x", 4, 6), 1)
		}},
		{"too few class tokens", "4 class tokens (got 2 tokens)", func(s *store, on Scope) {
			Projection{Space: space.Space{Dim: 8, Spheres: 4, Tokens: true}}.Forward(on, s.floats("x", 4, 6), 2)
		}},
		{"rows of class tokens", "one class token of 4", func(s *store, on Scope) {
			Projection{Space: space.Space{Dim: 8, Spheres: 4, Tokens: true}}.Rows(on, s.floats("x", 4, 6))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(0)
			err := func() (err error) {
				defer op.Catch(&err)
				c.build(s, NewScope(s))
				return nil
			}()
			var build *op.BuildError
			if !errors.As(err, &build) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a BuildError with %q", err, c.want)
			}
		})
	}
}
