package encoders

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

var update = flag.Bool("update", false, "write the golden files of this package")

// Sizes of the tests.
const (
	tokens = 5 // L
	vocab  = 20
)

var (
	tinyViT  = ViT{ImageOptions: ImageOptions{Size: 8, Patch: 4, Depth: 2, Width: 12, Heads: 3}}
	tinyBERT = BERT{TextOptions: TextOptions{Positions: 6, Layers: 2, FusionLayers: 1, Width: 16, Heads: 2}, Vocab: vocab}
)

// towers builds all parts once in s: it returns image tokens, text states, fused
// states, vocabulary logits of the fused states and projected features of a batch of n.
func towers(s *store, c *Context, n int, bert BERT) (images, ids, lengths *gorgonia.Node, out gorgonia.Nodes) {
	on := NewScope(s)
	images, ids, lengths = s.floats("images", n, 3, 8, 8), s.ints("ids", n*tokens), s.ints("lengths", n)
	x := tinyViT.Forward(on.In("image"), images)
	y := bert.Text(c, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, nil)
	z := bert.Fusion(c, on.In("text"), FusionArgs{Texts: y, Lengths: lengths, Images: x, TextLen: tokens, ImageLen: tinyViT.Tokens()})
	return images, ids, lengths, gorgonia.Nodes{x, y, z, bert.MLMHead(on.In("text"), z),
		Projection{Space: space.Space{Dim: 4}}.Forward(on.In("image_proj"), x, tinyViT.Tokens()),
		Projection{Space: space.Space{Dim: 4}}.Forward(on.In("text_proj"), y, tokens),
		Classifier{Classes: 2}.Forward(on.In("itm_head"), z, tokens)}
}

// TestParameterNames pins names and shapes of every parameter: they are the keys of
// checkpoints. go test ./encoders -run ParameterNames -update writes the list.
func TestParameterNames(t *testing.T) {
	s := newStore(0)
	towers(s, &Context{}, 2, tinyBERT)
	got := strings.Join(s.list(), "\n") + "\n"
	const file = "testdata/parameters.txt"
	if *update {
		check.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := check.Get(os.ReadFile(file))(t)
	if got != string(want) {
		t.Errorf("the parameters changed, and with them every checkpoint:\n%s", got)
	}
}

func TestShapes(t *testing.T) {
	const n = 3
	_, _, _, out := towers(newStore(0), &Context{}, n, tinyBERT)
	for i, want := range []string{"(15, 12)", "(15, 16)", "(15, 16)", "(15, 20)", "(3, 4)", "(3, 4)", "(3, 2)"} {
		if got := fmt.Sprint(out[i].Shape()); got != want {
			t.Errorf("output %d has shape %s, want %s", i, got, want)
		}
	}
	if tinyViT.Patches() != 4 || tinyViT.Tokens() != 5 {
		t.Errorf("%d patches and %d tokens, want 4 and 5", tinyViT.Patches(), tinyViT.Tokens())
	}
}

// evalTowers runs all outputs of towers for n rows of given data.
func evalTowers(t *testing.T, images []float32, ids, lengths []int32, key []int32, dropout float64) [][]float32 {
	t.Helper()
	var all [][]float32
	for i := range 7 {
		s := newStore(.2)
		c := &Context{}
		inputs := map[*gorgonia.Node]any{}
		if key != nil {
			c.DropoutKey = s.ints("key", 2)
			inputs[c.DropoutKey] = key
		}
		bert := tinyBERT
		bert.Dropout = dropout
		im, id, le, out := towers(s, c, len(lengths), bert)
		inputs[im], inputs[id], inputs[le] = images, ids, lengths
		all = append(all, s.run(t, out[i], inputs))
	}
	return all
}

// testBatch returns images and texts of lengths 5, 2, 3; padding is id 0.
func testBatch() (images []float32, ids, lengths []int32) {
	return normals(1, 3*3*8*8), []int32{2, 7, 8, 9, 10, 2, 11, 0, 0, 0, 2, 12, 13, 0, 0}, []int32{5, 2, 3}
}

// distance is the largest difference, infinite where one is not a number.
func distance(a, b []float32) float64 {
	var d float64
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	if math.IsNaN(d) {
		return math.Inf(1)
	}
	return d
}

// TestPaddingDoesNotMatter changes the ids beyond the lengths: valid rows of every
// part and the projection keep their bits.
func TestPaddingDoesNotMatter(t *testing.T) {
	images, ids, lengths := testBatch()
	before := evalTowers(t, images, ids, lengths, nil, 0)
	other := slices.Clone(ids)
	for i, n := range lengths {
		for k := int(n); k < tokens; k++ {
			other[i*tokens+k] = int32(3 + i + k)
		}
	}
	after := evalTowers(t, images, other, lengths, nil, 0)
	for _, part := range []int{1, 2, 3} { // text states, fused states, logits
		width := len(before[part]) / len(ids)
		for i, n := range lengths {
			for k := range tokens {
				at := (i*tokens + k) * width
				same := slices.Equal(before[part][at:][:width], after[part][at:][:width])
				if valid := k < int(n); valid && !same {
					t.Errorf("part %d, text %d: padding changes token %d", part, i, k)
				} else if !valid && same {
					t.Errorf("part %d, text %d: the test changed nothing at token %d", part, i, k)
				}
			}
		}
	}
	for _, part := range []int{4, 5, 6} {
		if !slices.Equal(before[part], after[part]) {
			t.Errorf("part %d: padding changes the features", part)
		}
	}
}

// TestTokensMatter is the reverse: each token within the length changes the first.
func TestTokensMatter(t *testing.T) {
	images, ids, lengths := testBatch()
	before := evalTowers(t, images, ids, lengths, nil, 0)[5]
	for k := range 5 {
		other := slices.Clone(ids)
		other[k] = 15
		if after := evalTowers(t, images, other, lengths, nil, 0)[5]; distance(before[:4], after[:4]) < 1e-4 {
			t.Errorf("token %d does not change the features of its text", k)
		} else if distance(before[4:], after[4:]) > 0 {
			t.Errorf("token %d of text 0 changes other texts", k)
		}
	}
	// The order of words matters too: positions.
	other := slices.Clone(ids)
	other[1], other[2] = other[2], other[1]
	if after := evalTowers(t, images, other, lengths, nil, 0)[5]; distance(before[:4], after[:4]) < 1e-4 {
		t.Error("the order of tokens does not matter")
	}
}

// TestBatchDoesNotMatter computes each pair alone and in a batch.
func TestBatchDoesNotMatter(t *testing.T) {
	images, ids, lengths := testBatch()
	together := evalTowers(t, images, ids, lengths, nil, 0)
	size := len(images) / 3
	for i := range 3 {
		alone := evalTowers(t, images[i*size:][:size], ids[i*tokens:][:tokens], lengths[i:][:1], nil, 0)
		for part, got := range alone {
			if d := distance(got, together[part][i*len(got):]); d > 2e-6 {
				t.Errorf("part %d of pair %d differs by %v from the batch", part, i, d)
			}
		}
	}
}

// TestFusionByIndex: rows that share an image by index equal rows that have copies of it.
func TestFusionByIndex(t *testing.T) {
	images, ids, lengths := testBatch()
	index := []int32{2, 0, 2}
	s := newStore(.2)
	on := NewScope(s)
	im, id, le, ix := s.floats("images", 3, 3, 8, 8), s.ints("ids", 15), s.ints("lengths", 3), s.ints("index", 3)
	x := tinyViT.Forward(on.In("image"), im)
	y := tinyBERT.Text(&Context{}, on.In("text"), TextArgs{IDs: id, Lengths: le, Len: tokens}, nil)
	z := tinyBERT.Fusion(&Context{}, on.In("text"), FusionArgs{Texts: y, Lengths: le, Images: x, Pairs: Pairs{Images: ix}, TextLen: tokens, ImageLen: tinyViT.Tokens()})
	got := s.run(t, z, map[*gorgonia.Node]any{im: images, id: ids, le: lengths, ix: index})
	size := len(images) / 3
	var copies []float32
	for _, i := range index {
		copies = append(copies, images[int(i)*size:][:size]...)
	}
	if d := distance(got, evalTowers(t, copies, ids, lengths, nil, 0)[2]); d > 2e-6 {
		t.Errorf("fusion by index differs by %v", d)
	}
}

// TestDropout: masks are a function of the key; without one, or with share 0, there
// are none. The vision transformer never has any.
func TestDropout(t *testing.T) {
	images, ids, lengths := testBatch()
	plain := evalTowers(t, images, ids, lengths, nil, 0)
	one := evalTowers(t, images, ids, lengths, []int32{1, 2}, .3)
	again := evalTowers(t, images, ids, lengths, []int32{1, 2}, .3)
	other := evalTowers(t, images, ids, lengths, []int32{1, 3}, .3)
	for part := range plain {
		if !slices.Equal(one[part], again[part]) {
			t.Errorf("part %d: the same key gives other masks", part)
		}
		text := part != 0 && part != 4
		if text != (distance(one[part], other[part]) > 1e-3) {
			t.Errorf("part %d: two keys differ by %v", part, distance(one[part], other[part]))
		}
		if text != (distance(one[part], plain[part]) > 1e-3) {
			t.Errorf("part %d: dropout changes %v", part, distance(one[part], plain[part]))
		}
	}
	for name, got := range map[string][][]float32{
		"no key":   evalTowers(t, images, ids, lengths, nil, .3),
		"no share": evalTowers(t, images, ids, lengths, []int32{1, 2}, 0),
	} {
		for part := range got {
			if !slices.Equal(got[part], plain[part]) {
				t.Errorf("%s: part %d has dropout", name, part)
			}
		}
	}
}

// TestDropoutSites: every place of a context has masks of its own, and SkipSites moves
// to others.
func TestDropoutSites(t *testing.T) {
	mask := func(skip uint64, use int) []float32 {
		s := newStore(0)
		c := &Context{DropoutKey: s.ints("key", 2)}
		c.SkipSites(skip)
		x := s.floats("x", 4, 40)
		ones := slices.Repeat([]float32{1}, 160)
		var out *gorgonia.Node
		for range use {
			out = c.dropout(x, .5)
		}
		return s.run(t, out, map[*gorgonia.Node]any{c.DropoutKey: []int32{5, 6}, x: ones})
	}
	if slices.Equal(mask(0, 1), mask(0, 2)) {
		t.Error("two places share a mask")
	}
	if !slices.Equal(mask(0, 2), mask(1, 1)) {
		t.Error("skipping a place is not using it")
	}
	kept := 0
	for _, v := range mask(0, 1) {
		switch v {
		case 0:
		case 2: // 1/(1-.5)
			kept++
		default:
			t.Fatalf("dropout makes %v of 1", v)
		}
	}
	if kept < 48 || kept > 112 { // five deviations of 6.3 around 80
		t.Errorf("%d of 160 are kept at share .5", kept)
	}
}

// TestProjectionIsUnit: features have length 1.
func TestProjectionIsUnit(t *testing.T) {
	images, ids, lengths := testBatch()
	all := evalTowers(t, images, ids, lengths, nil, 0)
	for _, part := range []int{4, 5} {
		for i := range 3 {
			var s float64
			for _, v := range all[part][i*4:][:4] {
				s += float64(v) * float64(v)
			}
			if !(math.Abs(s-1) <= 1e-5) {
				t.Errorf("part %d: squared length %v", part, s)
			}
		}
	}
}

// TestMisuse: what does not fit together is an error that names the part.
func TestMisuse(t *testing.T) {
	for _, c := range []struct {
		name, want string
		build      func(s *store, on Scope)
	}{
		{"image of another size", "want images (B, 3, 8, 8)", func(s *store, on Scope) { tinyViT.Forward(on, s.floats("x", 2, 3, 4, 4)) }},
		{"image without channels", "want images", func(s *store, on Scope) { tinyViT.Forward(on, s.floats("x", 2, 8, 8)) }},
		{"patch does not fit", "multiple of the patch", func(s *store, on Scope) {
			ViT{ImageOptions: ImageOptions{Size: 8, Patch: 3, Depth: 1, Width: 4, Heads: 1}}.Forward(on, s.floats("x", 2, 3, 8, 8))
		}},
		{"no patch", "multiple of the patch", func(s *store, on Scope) {
			ViT{ImageOptions: ImageOptions{Size: 8}}.Forward(on, s.floats("x", 2, 3, 8, 8))
		}},
		{"no patch of a tower", "multiple of the patch", func(s *store, on Scope) {
			ImageTower{ViT{ImageOptions: ImageOptions{Size: 8}}}.Encode(&Context{}, on, Inputs{batch.Images: s.floats("x", 2, 3, 8, 8)}, Want{Classes: true})
		}},
		{"heads", "multiple of 5 heads", func(s *store, on Scope) {
			v := tinyViT
			v.Heads = 5
			v.Forward(on, s.floats("x", 2, 3, 8, 8))
		}},
		{"more tokens than positions", "at least 7 rows", func(s *store, on Scope) {
			tinyBERT.Text(&Context{}, on, TextArgs{IDs: s.ints("ids", 14), Lengths: s.ints("lengths", 2), Len: 7}, nil)
		}},
		{"ids are no whole texts", "multiple of 5", func(s *store, on Scope) {
			tinyBERT.Text(&Context{}, on, TextArgs{IDs: s.ints("ids", 14), Lengths: s.ints("lengths", 2), Len: 5}, nil)
		}},
		{"lengths of another batch", "shape (2)", func(s *store, on Scope) {
			tinyBERT.Text(&Context{}, on, TextArgs{IDs: s.ints("ids", 10), Lengths: s.ints("lengths", 3), Len: 5}, nil)
		}},
		{"no length of a text", "multiple of the sequence length", func(s *store, on Scope) {
			tinyBERT.Fusion(&Context{}, on, FusionArgs{Texts: s.floats("x", 10, 16), Lengths: s.ints("lengths", 2), Images: s.floats("y", 10, 12), ImageLen: 5})
		}},
		{"another batch of images", "as many key sequences as rows", func(s *store, on Scope) {
			tinyBERT.Fusion(&Context{}, on, FusionArgs{Texts: s.floats("x", 10, 16), Lengths: s.ints("lengths", 2), Images: s.floats("y", 15, 12), TextLen: 5, ImageLen: 5})
		}},
		{"states are no rows", "want rows (R, D)", func(s *store, on Scope) { tinyBERT.MLMHead(on, s.floats("x", 2, 5, 16)) }},
		{"sequences do not divide", "multiple of the sequence length", func(s *store, on Scope) { Projection{Space: space.Space{Dim: 4}}.Forward(on, s.floats("x", 10, 16), 3) }},
		{"empty sequences", "multiple of the sequence length", func(s *store, on Scope) { Classifier{Classes: 2}.Forward(on, s.floats("x", 10, 16), 0) }},
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

// TestPatchesMatter: each patch changes the class token, and so does their order.
func TestPatchesMatter(t *testing.T) {
	images, ids, lengths := testBatch()
	images, ids, lengths = images[:3*64], ids[:tokens], lengths[:1]
	before := evalTowers(t, images, ids, lengths, nil, 0)[4]
	// pixel calls f with both indices of each pixel of the upper left and lower right patch.
	pixel := func(x []float32, f func(a, b *float32)) []float32 {
		x = slices.Clone(x)
		for c := range 3 {
			for y := range 4 {
				for k := range 4 {
					f(&x[c*64+y*8+k], &x[c*64+(y+4)*8+k+4])
				}
			}
		}
		return x
	}
	for name, f := range map[string]func(a, b *float32){
		"first patch":   func(a, _ *float32) { *a = -*a },
		"last patch":    func(_, b *float32) { *b = -*b },
		"two exchanged": func(a, b *float32) { *a, *b = *b, *a },
	} {
		if after := evalTowers(t, pixel(images, f), ids, lengths, nil, 0)[4]; distance(before, after) < 1e-4 {
			t.Errorf("%s: the features do not change", name)
		}
	}
}
