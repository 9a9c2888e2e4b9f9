package encoders

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// several are towers with three class tokens, which pass so many of the last blocks.
func several(blocks int) (ViT, BERT) {
	v, b := tinyViT, tinyBERT
	v.Depth, b.Layers, b.FusionLayers, b.Positions = 3, 3, 0, tokens+2
	v.Classes, b.Classes, v.TokenBlocks, b.TokenBlocks = 3, 3, blocks, blocks
	return v, b
}

// TestClassesShapes: parameters are those of one class token but for those of the tokens
// themselves, and results have the shapes promised.
func TestClassesShapes(t *testing.T) {
	const n = 2
	for _, blocks := range []int{0, 1, 3} {
		v, b := several(blocks)
		s, one := newStore(0), newStore(0)
		on := NewScope(s)
		x, ids, lengths := s.floats("x", n, 3, 8, 8), s.ints("ids", n*tokens), s.ints("lengths", n)
		images, imageClasses := v.Encode(on.In("image"), x)
		texts, textClasses := b.TextClasses(&Context{}, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, true)
		_, fewer := b.TextClasses(&Context{}, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, false)
		for i, c := range []struct {
			node *gorgonia.Node
			want string
		}{
			{images, "(10, 12)"}, {imageClasses, "(6, 12)"}, {v.Class(on.In("image"), x), "(6, 12)"}, {v.Forward(on.In("image"), x), "(10, 12)"},
			{texts, "(10, 16)"}, {textClasses, "(6, 16)"}, {fewer, "(6, 16)"},
			{b.Text(&Context{}, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, nil), "(10, 16)"},
		} {
			if got := fmt.Sprint(c.node.Shape()); got != c.want {
				t.Errorf("%d blocks: result %d has shape %s, want %s", blocks, i, got, c.want)
			}
		}
		v.Classes, b.Classes, v.TokenBlocks, b.TokenBlocks = 0, 0, 0, 0
		on = NewScope(one)
		v.Encode(on.In("image"), one.floats("x", n, 3, 8, 8))
		b.Text(&Context{}, on.In("text"), TextArgs{IDs: one.ints("ids", n*tokens), Lengths: one.ints("lengths", n), Len: tokens}, nil)
		var other []string
		for _, line := range s.list() {
			if !slices.Contains(one.list(), line) {
				other = append(other, line)
			}
		}
		if want := []string{"image/cls_token (3, 12)", "image/pos_embed (7, 12)"}; !slices.Equal(other, want) {
			t.Errorf("%d blocks: parameters that one class token does not have: %v, want %v", blocks, other, want)
		}
	}
}

// results are what several towers make of batch.
type results struct{ tokens, classes, class, states, textClasses, fewer, text []float32 }

func runClasses(t *testing.T, blocks int, dropout float64) results {
	t.Helper()
	v, b := several(blocks)
	b.Dropout = dropout
	images, ids, lengths := testBatch()
	// one builds the graph for one output alone, as dropout counts places.
	one := func(build func(c *Context, on Scope, x, ids, lengths *gorgonia.Node) *gorgonia.Node) []float32 {
		s := newStore(.2)
		x, id, le, key := s.floats("x", 3, 3, 8, 8), s.ints("ids", 3*tokens), s.ints("lengths", 3), s.ints("key", 2)
		out := build(&Context{DropoutKey: key}, NewScope(s), x, id, le)
		in := map[*gorgonia.Node]any{x: images, id: ids, le: lengths}
		if dropout > 0 {
			in[key] = []int32{1, 2}
		}
		return s.run(t, out, in)
	}
	text := func(all bool, part int) []float32 {
		return one(func(c *Context, on Scope, _, ids, lengths *gorgonia.Node) *gorgonia.Node {
			states, classes := b.TextClasses(c, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, all)
			return []*gorgonia.Node{states, classes}[part]
		})
	}
	return results{
		tokens: one(func(_ *Context, on Scope, x, _, _ *gorgonia.Node) *gorgonia.Node { return v.Forward(on, x) }),
		classes: one(func(_ *Context, on Scope, x, _, _ *gorgonia.Node) *gorgonia.Node {
			_, classes := v.Encode(on, x)
			return classes
		}),
		class:  one(func(_ *Context, on Scope, x, _, _ *gorgonia.Node) *gorgonia.Node { return v.Class(on, x) }),
		states: text(true, 0), textClasses: text(true, 1), fewer: text(false, 1),
		text: one(func(c *Context, on Scope, _, ids, lengths *gorgonia.Node) *gorgonia.Node {
			return b.Text(c, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, nil)
		}),
	}
}

// TestClassesAlone: class tokens computed alone are those beside the others, the first is
// in both results, and no two of an item are alike.
func TestClassesAlone(t *testing.T) {
	for _, blocks := range []int{0, 1, 2, 3} {
		x := runClasses(t, blocks, 0)
		if d := distance(x.classes, x.class); !(d < 2e-6) {
			t.Errorf("%d blocks: class tokens of images differ by %v when computed alone", blocks, d)
		}
		if d := distance(x.textClasses, x.fewer); !(d < 2e-6) {
			t.Errorf("%d blocks: class tokens of texts differ by %v when computed alone", blocks, d)
		}
		for i := range 3 {
			if !slices.Equal(x.tokens[i*5*12:][:12], x.classes[i*3*12:][:12]) || !slices.Equal(x.states[i*5*16:][:16], x.textClasses[i*3*16:][:16]) {
				t.Errorf("%d blocks, item %d: the first class token is not the first token", blocks, i)
			}
			if distance(x.classes[(i*3+1)*12:][:12], x.classes[(i*3+2)*12:][:12]) < 1e-3 ||
				distance(x.textClasses[(i*3+1)*16:][:16], x.textClasses[(i*3+2)*16:][:16]) < 1e-3 {
				t.Errorf("%d blocks, item %d: two class tokens are alike", blocks, i)
			}
		}
	}
	all, three := runClasses(t, 0, 0), runClasses(t, 3, 0)
	if !slices.Equal(all.classes, three.classes) || !slices.Equal(all.textClasses, three.textClasses) {
		t.Error("all three blocks and all blocks are not the same")
	}
	if one := runClasses(t, 1, 0); distance(all.classes, one.classes) < 1e-3 || distance(all.textClasses, one.textClasses) < 1e-3 {
		t.Error("one block and all blocks are the same")
	}
}

// TestRepeatedTokens compares texts of three class tokens with the same graph over ids
// that have them already, and texts of one with those words at the places they have there.
func TestRepeatedTokens(t *testing.T) {
	_, ids, lengths := testBatch()
	const wide = tokens + 2
	var long, more []int32
	for i, n := range lengths {
		long = append(append(long, ids[i*tokens], ids[i*tokens]), ids[i*tokens:(i+1)*tokens]...)
		more = append(more, n+2)
	}
	_, b := several(0)
	b.Classes = 0
	s := newStore(.2)
	id, le := s.ints("ids", len(long)), s.ints("lengths", 3)
	want := s.run(t, b.Text(&Context{}, NewScope(s).In("text"), TextArgs{IDs: id, Lengths: le, Len: wide}, nil), map[*gorgonia.Node]any{id: long, le: more})
	got := runClasses(t, 0, 0)
	for i := range 3 {
		row := want[i*wide*16:][:wide*16]
		if d := distance(got.textClasses[i*3*16:][:3*16], row); d > 2e-6 {
			t.Errorf("text %d: class tokens differ by %v", i, d)
		}
		n := int(lengths[i]) - 1
		if d := distance(got.states[(i*tokens+1)*16:][:n*16], row[3*16:]); d > 2e-6 {
			t.Errorf("text %d: words differ by %v", i, d)
		}
	}
	// Without layers the embeddings are the states.
	_, b = several(0)
	b.Layers = 0
	both := func(build func(on Scope, id, le *gorgonia.Node) *gorgonia.Node) []float32 {
		s := newStore(.2)
		id, le := s.ints("ids", len(ids)), s.ints("lengths", 3)
		return s.run(t, build(NewScope(s), id, le), map[*gorgonia.Node]any{id: ids, le: lengths})
	}
	one := both(func(on Scope, id, le *gorgonia.Node) *gorgonia.Node {
		return b.Text(&Context{}, on, TextArgs{IDs: id, Lengths: le, Len: tokens}, nil)
	})
	all := both(func(on Scope, id, le *gorgonia.Node) *gorgonia.Node {
		states, _ := b.TextClasses(&Context{}, on, TextArgs{IDs: id, Lengths: le, Len: tokens}, true)
		return states
	})
	if !slices.Equal(one, all) {
		t.Errorf("words have other positions beside one class token: they differ by %v", distance(one, all))
	}
}

// TestClassesDropout: masks reach every class token.
func TestClassesDropout(t *testing.T) {
	plain, dropped := runClasses(t, 1, 0), runClasses(t, 1, .3)
	for i := range 9 {
		if distance(plain.textClasses[i*16:][:16], dropped.textClasses[i*16:][:16]) < 1e-3 {
			t.Errorf("class token %d has no dropout", i)
		}
	}
}

// TestOneClass: a tower told to have one class token is the tower that was told nothing.
func TestOneClass(t *testing.T) {
	images, ids, lengths := testBatch()
	var got [2][][]float32
	for classes := range 2 {
		v, b := several(0)
		v.Classes, b.Classes = classes, classes
		s := newStore(.2)
		on := NewScope(s)
		x, id, le := s.floats("x", 3, 3, 8, 8), s.ints("ids", 3*tokens), s.ints("lengths", 3)
		states, textClasses := b.TextClasses(&Context{}, on.In("text"), TextArgs{IDs: id, Lengths: le, Len: tokens}, true)
		_, fewer := b.TextClasses(&Context{}, on.In("text"), TextArgs{IDs: id, Lengths: le, Len: tokens}, false)
		plain := b.Text(&Context{}, on.In("text"), TextArgs{IDs: id, Lengths: le, Len: tokens}, nil)
		if states != plain {
			t.Error("one class token is another graph")
		}
		_, imageClasses := v.Encode(on.In("image"), x)
		for _, out := range []*gorgonia.Node{v.Class(on.In("image"), x), imageClasses, textClasses, fewer, layout.StridedRows(plain, 0, tokens, 3)} {
			got[classes] = append(got[classes], s.run(t, out, map[*gorgonia.Node]any{x: images, id: ids, le: lengths}))
		}
	}
	for i := range got[0] {
		if !slices.Equal(got[0][i], got[1][i]) {
			t.Errorf("result %d depends on how one class token is asked for", i)
		}
	}
	for _, pair := range [][2]int{{0, 1}, {2, 3}, {2, 4}} {
		if d := distance(got[0][pair[0]], got[0][pair[1]]); d > 2e-6 {
			t.Errorf("results %v differ by %v", pair, d)
		}
	}
}

// TestTopologies projects by hand: x is rows of two class tokens, w the only weight.
func TestTopologies(t *testing.T) {
	x := []float32{1, 2, 3, -1, 0, 5, 2, 2} // two items of two tokens of width 2
	w := []float32{1, 0, 0, 2, 1, 1, -1, 3} // (4, 2)
	dense := func(token, rows int) (y []float64) {
		for r := range rows {
			y = append(y, float64(w[2*r]*x[2*token]+w[2*r+1]*x[2*token+1]))
		}
		return y
	}
	unit := func(y []float64) (u []float32) {
		norm := 0.
		for _, v := range y {
			norm += v * v
		}
		for _, v := range y {
			u = append(u, float32(v/math.Sqrt(norm)))
		}
		return u
	}
	for name, c := range map[string]struct {
		p    Projection
		want func(item int) []float32
	}{
		"sphere":  {Projection{Space: space.Space{Dim: 4}}, func(i int) []float32 { return unit(dense(2*i, 4)) }},
		"oblique": {Projection{Space: space.Space{Dim: 4, Spheres: 2}}, func(i int) []float32 { y := dense(2*i, 4); return append(unit(y[:2]), unit(y[2:])...) }},
		"tokens": {Projection{Space: space.Space{Dim: 4, Spheres: 2, Tokens: true}}, func(i int) []float32 {
			return append(unit(dense(2*i, 2)), unit(dense(2*i+1, 2))...)
		}},
		"euclid": {Projection{Space: space.Space{Dim: 4, Euclid: true}}, func(i int) (y []float32) {
			for _, v := range dense(2*i, 4) {
				y = append(y, float32(v))
			}
			return y
		}},
	} {
		c.p.NoBias = true
		s := newStore(0)
		in := s.floats("x", 4, 2)
		out := c.p.Forward(NewScope(s), in, 2)
		copy(s.values["weight"], w)
		if n := len(s.values["weight"]); n != 8 && n != 4 || len(s.values) != 1 {
			t.Errorf("%s: parameters %v", name, s.list())
		}
		got := s.run(t, out, map[*gorgonia.Node]any{in: x})
		for i := range 2 {
			want := c.want(i)
			if d := distance(got[i*4:(i+1)*4], want); len(want) != 4 || d > 1e-6 {
				t.Errorf("%s: item %d is %v, want %v", name, i, got[i*4:][:4], want)
			}
		}
	}
}
