package encoders

import (
	"errors"
	"testing"

	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// TestPlaces: the states at some places are those rows of all states, for the text
// layers, for fusion layers of one and two, and for class tokens.
func TestPlaces(t *testing.T) {
	images, ids, lengths := testBatch()
	pairTexts, pairImages := []int32{0, 1, 2, 1, 2}, []int32{0, 2, 1, 1, 0}
	textPlaces := [2][]int32{{0, 3, 5, 10, 12}, {0, 0, 1, 2, 2}}
	pairPlaces := [2][]int32{{0, 5, 10, 16, 20, 22, 2}, {0, 1, 2, 3, 4, 4, 0}}
	for _, layers := range []int{1, 2} {
		bert := tinyBERT
		bert.Layers, bert.FusionLayers = layers, layers
		s := newStore(.2)
		on, c := NewScope(s), &Context{}
		in := map[*gorgonia.Node]any{}
		ints := func(name string, v []int32) *gorgonia.Node {
			n := s.ints(name, len(v))
			in[n] = v
			return n
		}
		im := s.floats("images", 3, 3, 8, 8)
		in[im] = images
		id, le := ints("ids", ids), ints("lengths", lengths)
		textAt := &Places{Rows: ints("text rows", textPlaces[0]), Sequences: ints("text sequences", textPlaces[1])}
		pairAt := &Places{Rows: ints("pair rows", pairPlaces[0]), Sequences: ints("pair sequences", pairPlaces[1])}
		p := Pairs{Texts: ints("texts", pairTexts), Images: ints("pair images", pairImages)}

		x := tinyViT.Forward(on.In("image"), im)
		y := bert.Text(c, on.In("text"), TextArgs{IDs: id, Lengths: le, Len: tokens}, nil)
		fuse := func(p Pairs, at *Places) *gorgonia.Node {
			return bert.Fusion(c, on.In("text"), FusionArgs{Texts: y, Lengths: le, Images: x, Pairs: p, At: at, TextLen: tokens, ImageLen: tinyViT.Tokens()})
		}
		for name, pair := range map[string][2]*gorgonia.Node{
			"class tokens": {layout.StridedRows(x, 0, tinyViT.Tokens(), 3), tinyViT.Class(on.In("image"), im)},
			"text":         {textAt.of(y), bert.Text(c, on.In("text"), TextArgs{IDs: id, Lengths: le, Len: tokens}, textAt)},
			"pairs":        {pairAt.of(fuse(p, nil)), fuse(p, pairAt)},
			"own pairs":    {textAt.of(fuse(Pairs{}, nil)), fuse(Pairs{}, textAt)},
		} {
			want := append([]float32(nil), s.run(t, pair[0], in)...)
			got := s.run(t, pair[1], in)
			if len(got) != len(want) {
				t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
			}
			if d := distance(got, want); !(d < 2e-6) {
				t.Errorf("%d layers: %s differ by %v", layers, name, d)
			}
		}
	}
}

// TestPlacesNeedLayers: a tower without layers still returns places; fusion without
// layers and a vision transformer without blocks are errors.
func TestPlacesNeedLayers(t *testing.T) {
	s := newStore(.2)
	on, c := NewScope(s), &Context{}
	at := &Places{Rows: s.ints("rows", 2), Sequences: s.ints("sequences", 2)}
	bert := tinyBERT
	bert.Layers, bert.FusionLayers = 0, 0
	if got := bert.Text(c, on, TextArgs{IDs: s.ints("ids", 10), Lengths: s.ints("lengths", 2), Len: 5}, at).Shape()[0]; got != 2 {
		t.Errorf("a text tower without layers gives %d states, want 2", got)
	}
	for name, build := range map[string]func(){
		"fusion": func() {
			bert.Fusion(c, on, FusionArgs{Texts: s.floats("x", 10, 16), Lengths: s.ints("lengths", 2), Images: s.floats("y", 10, 12), At: at, TextLen: 5, ImageLen: 5})
		},
		"vit": func() {
			ViT{ImageOptions: ImageOptions{Size: 8, Patch: 4, Width: 12, Heads: 3}}.Class(on, s.floats("z", 2, 3, 8, 8))
		},
	} {
		err := func() (err error) {
			defer op.Catch(&err)
			build()
			return nil
		}()
		var e *op.BuildError
		if !errors.As(err, &e) {
			t.Errorf("%s without layers: error %v, want a BuildError", name, err)
		}
	}
}
