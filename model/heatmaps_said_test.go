package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/check"
	"gorgonia.org/gorgonia"
)

// setParam writes values to a parameter from its beginning.
func setParam(t *testing.T, m *Trainer, name string, values ...float32) {
	t.Helper()
	q, ok := m.params.Get(name)
	if !ok {
		t.Fatalf("no parameter %s", name)
	}
	copy(m.params.Value(q), values)
}

// param returns the values of a parameter.
func param(t *testing.T, m *Trainer, name string) []float32 {
	t.Helper()
	q, ok := m.params.Get(name)
	if !ok {
		t.Fatalf("no parameter %s", name)
	}
	return m.params.Value(q)
}

// rowOf is row i of b as a batch.
func rowOf(b *batch.Batch, i int) *batch.Batch {
	one := batch.New(1, b.Columns()...)
	one.Row(0).Copy(b.Row(i))
	return one
}

// sameMaps compares maps with others to 1e-4 of the largest value, which must be above 0.
func sameMaps(t *testing.T, what string, got, want []float32) {
	t.Helper()
	wide := make([]float64, len(got))
	for i, v := range got {
		wide[i] = float64(v)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	explainedAs(t, what, wide, want)
}

// TestJudgedMapsOfPairs: where the task head says what a match head says, a class has the map of the match, which is
// compared with PyTorch; and each row of a batch has its own.
func TestJudgedMapsOfPairs(t *testing.T) {
	match, _, g := loadGolden(t, "pair")
	m := modelOn(t, entailmentConfig(), newEngine(t))
	for _, q := range m.params.List() {
		if !strings.HasPrefix(q.Name, "task_head/") {
			copy(m.params.Value(q), param(t, match, q.Name))
		}
	}
	// relu(x + 100) is x + 100.
	const d, far = 24, 100
	w, b := param(t, match, "itm_head/weight"), param(t, match, "itm_head/bias")
	clear(param(t, m, "task_head/dense/weight"))
	for i := range d {
		param(t, m, "task_head/dense/weight")[i*d+i], param(t, m, "task_head/dense/bias")[i] = 1, far
	}
	for k := range 2 {
		bias := b[k]
		for i := range d {
			bias -= far * w[k*d+i]
		}
		param(t, m, "task_head/classifier/bias")[k] = bias
	}
	setParam(t, m, "task_head/classifier/weight", w...)

	x := goldenPairs(m, g, 4)
	want := check.Get(match.Explainer().HeatMaps(t.Context(), x, HeatOf{true, 0}))(t)
	got := check.Get(m.Classifier().HeatMaps(t.Context(), x, []int32{1, 1, 1, 1}))(t)
	sameMaps(t, "as a match", got, want)
	other := check.Get(m.Classifier().HeatMaps(t.Context(), x, []int32{0, 1, 0, 1}))(t)
	for i := range 4 {
		if same := slices.Equal(other[4*i:][:4], got[4*i:][:4]); same != (i%2 == 1) {
			t.Errorf("row %d: class %d and class 1 have the maps %v and %v", i, i%2, other[4*i:][:4], got[4*i:][:4])
		}
		one := check.Get(m.Classifier().HeatMaps(t.Context(), rowOf(x, i), []int32{int32(i % 2)}))(t)
		sameMaps(t, fmt.Sprint("row ", i), one, other[4*i:][:4])
	}
	check.Fails(m.Classifier().HeatMaps(t.Context(), x, []int32{0, 1, 3, 0}))(t, "no class 3: the model tells 3")
	check.Fails(m.Classifier().HeatMaps(t.Context(), x, []int32{0}))(t, "a class for each (got 1)")
	if match.Classifier() != nil || !m.Classifier().HasHeatMaps() || m.Writer() != nil {
		t.Error("a model of pairs has maps of classes, or one of classes has none")
	}
}

// TestJudgedMapsOfTwoPictures: a statement that passes the layers of one picture alone has the maps of a model of that
// picture, and none of the other one.
func TestJudgedMapsOfTwoPictures(t *testing.T) {
	g := openGolden(t, "nlvr")
	for picture := range 2 {
		both, one := build(t, tinyNLVR(), "builtin", 2), build(t, entailmentConfig(), "builtin", 2)
		for _, q := range both.params.List() {
			copy(both.params.Value(q), g.floats("param/"+q.Name))
		}
		// A layer that adds nothing behind a norm without weights changes nothing.
		plain := func(norm string) {
			clear(param(t, both, norm+"/bias"))
			for i := range 24 {
				param(t, both, norm+"/weight")[i] = 1
			}
		}
		plain("text/layers/01/ffn/norm")
		for pair := range 2 {
			own, other := fmt.Sprintf("text/layers/%02d/", 2+2*pair+picture), fmt.Sprintf("text/layers/%02d/", 3+2*pair-picture)
			for _, part := range []string{"attention", "crossattention", "ffn"} {
				plain(other + part + "/norm")
				clear(param(t, both, other+part+"/output/weight"))
				clear(param(t, both, other+part+"/output/bias"))
			}
			plain(own + "ffn/norm")
		}
		for _, q := range one.params.List() {
			name := q.Name
			for pair := range 2 {
				old := fmt.Sprintf("text/layers/%02d/", 2+pair)
				if part, ok := strings.CutPrefix(name, old); ok {
					layer := 2 + 2*pair + picture
					if strings.Contains(part, "/kv/") {
						layer = 2 + 2*pair // which both share
					}
					name = fmt.Sprintf("text/layers/%02d/", layer) + part
					break
				}
			}
			copy(one.params.Value(q), param(t, both, name))
		}
		b := batch.New(4, both.Classifier().Columns()...)
		copy(b.Floats(batch.Images), g.floats("input/images"))
		copy(b.Floats(batch.SecondImages), g.floats("input/second"))
		copy(b.Ints(batch.Tokens), g.ints("input/tokens"))
		copy(b.Ints(batch.Lengths), g.ints("input/lengths"))
		x := batch.New(4, one.Classifier().Columns()...)
		copy(x.Floats(batch.Images), g.floats([]string{"input/images", "input/second"}[picture]))
		copy(x.Ints(batch.Tokens), b.Ints(batch.Tokens))
		copy(x.Ints(batch.Lengths), b.Ints(batch.Lengths))

		classes := []int32{0, 1, 1, 0}
		want := check.Get(one.Classifier().HeatMaps(t.Context(), x, classes))(t)
		maps := check.Get(both.Classifier().HeatMaps(t.Context(), b, classes))(t)
		var got []float32
		for r := range 4 {
			got = append(got, maps[(2*r+picture)*4:][:4]...)
			if rest := maps[(2*r+1-picture)*4:][:4]; slices.Max(rest) != 0 {
				t.Errorf("picture %d says %v, though nobody asks it", 1-picture, rest)
			}
		}
		sameMaps(t, fmt.Sprint("picture ", picture), got, want)
	}
}

// nudges compares the sums over rows of gradients (n, D), of which D elements of a parameter shift all, with finite
// differences.
func nudges(t *testing.T, m *Trainer, name string, from int, x *heatMaps, run func()) {
	t.Helper()
	score := func() float64 {
		run()
		v := check.Get(x.machine.Scalar(x.score))(t)
		return float64(v)
	}
	grad := x.tokens.grad
	if len(x.looks) > 0 {
		grad = x.looks[0].gathered.grad
	}
	most := 0.0
	for k := range 5 {
		score()
		a := check.Get(x.machine.Value(grad))(t)
		sum, d := 0.0, a.Dim(1)
		for r := range a.Dim(0) {
			sum += float64(a.F32[r*d+k])
		}
		most = max(most, math.Abs(sum))
		if want := nudged(t, m, name, from+k, score); !(math.Abs(sum-want) <= 2e-2*math.Abs(want)+2e-3) {
			t.Errorf("%s, channel %d: the gradients sum to %v, finite differences to %v", name, k, sum, want)
		}
	}
	if most < 1e-2 {
		t.Errorf("%s: all gradients are %v or below", name, most)
	}
}

// TestJudgedMapsOfImages: of an image tower alone, gradients to its patches are those of finite differences, and the
// maps are their products with the patches; of a residual network, which has no block but its last, they are what a
// mean over places and a linear layer make of them.
func TestJudgedMapsOfImages(t *testing.T) {
	classes := []int32{4, 0, 2}
	for name, sets := range map[string][]string{
		"class": nil, "mean": {"model.image.pool=mean"},
		"resnet": {"model.image.style=resnet", "model.image.resnet.depth=18", "model.image.size=64", "model.image.resnet.width=4", "model.head.dim=32"},
	} {
		m, err := New(tinyClasses(t, sets...), Options{Engine: newEngine(t), Classes: fiveClasses})
		if err != nil {
			t.Fatal(name, err)
		}
		w := param(t, m, "class_head/classifier/weight")
		for i := range w {
			w[i] = float32(math.Sin(float64(i * i)))
		}
		b := batch.New(3, m.Classifier().Columns()...)
		for i := range b.Floats(batch.Images) {
			b.Floats(batch.Images)[i] = float32(math.Sin(float64(i*i%977) * .7))
		}
		var maps []float32
		run := func() {
			if maps, err = m.Classifier().HeatMaps(t.Context(), b, classes); err != nil {
				t.Fatal(name, err)
			}
		}
		run()
		want := make([]float32, len(maps))
		if name == "resnet" {
			states, _ := check.Get2(m.Image().Encode(t.Context(), b))(t)
			const p, d = 4, 32
			for i := range want {
				sum := 0.0
				for k := range d {
					sum += float64(states[(i/p*(1+p)+1+i%p)*d+k]) * float64(w[int(classes[i/p])*d+k]) / p
				}
				want[i] = float32(max(0, sum))
			}
			sameMaps(t, name, maps, want)
			continue
		}
		x := m.classifier.maps.kept[3]
		nudges(t, m, map[string]string{"class": "image/blocks/01/norm1/bias", "mean": "image/blocks/01/mlp/fc2/bias"}[name], 0, x, run)
		a, _ := x.machine.Value(x.tokens.node)
		g, _ := x.machine.Value(x.tokens.grad)
		for r := range 3 {
			for p := range 4 {
				sum := 0.0
				for k := range 16 {
					at := (r*5+1+p)*16 + k
					sum += float64(a.F32[at]) * float64(g.F32[at])
				}
				want[r*4+p] = float32(max(0, sum))
			}
		}
		sameMaps(t, name, maps, want)
	}
}

// TestWrittenMaps: the score of an answer or a caption is what it is ranked by, gradients are those of finite
// differences, and the map of a text is the same whatever stands beside it in a batch.
func TestWrittenMaps(t *testing.T) {
	texts := [][]int32{{2, 7, 3}, {2, 8, 9, 3}, {2, 7, 9, 11, 3}, {2, 30, 3}}
	for mode, name := range map[string]string{"vqa": "text/layers/02/crossattention/kv/bias", "captioning": "decoder/layers/00/crossattention/kv/bias"} {
		m, b, _ := loadDecoder(t, mode)
		ranker := check.Get(m.Writer().Ranker(texts, 0))(t)
		ranked := check.Get(ranker.Rank(t.Context(), b))(t)
		want := 0.0
		for i := range texts {
			want += float64(ranked[i*len(texts)+i])
		}
		var maps []float32
		run := func() {
			maps = check.Get(m.Writer().HeatMaps(t.Context(), b, texts))(t)
		}
		run()
		x := m.writer.maps.kept[textsKey{rows: 4, len: 4}]
		if x == nil {
			t.Fatalf("%s: no computation of texts of 4 tokens", mode)
		}
		if got, err := x.machine.Scalar(x.score); err != nil || !(math.Abs(float64(got)-want) <= 1e-5*math.Abs(want)) {
			t.Errorf("%s: the log-probabilities sum to %v, ranked to %v (%v)", mode, got, want, err)
		}
		all := slices.Clone(maps)
		plain := make([]float32, len(all))
		for i, text := range texts {
			n := len(text) - 1 // tokens that are read
			if mode == "vqa" {
				n = int(b.Ints(batch.Lengths)[i])
			}
			var v [3][]float32
			for k, node := range []*gorgonia.Node{x.looks[0].q, x.looks[0].kv, x.looks[0].gathered.grad} {
				a := check.Get(x.machine.Value(node))(t)
				v[k] = a.F32[i*len(a.F32)/4:][:len(a.F32)/4]
			}
			const d, tokens, p = 24, 5, 4
			a := explain.Attention{H: 2, L: n, T: tokens, D: d, Queries: v[0][:n*d], KeyValues: v[1], Grad: v[2][:n*d]}
			for k, r := range a.Relevance() {
				if k%tokens > 0 {
					plain[i*p+k%tokens-1] += float32(r) * d / float32(len(v[0]))
				}
			}
		}
		sameMaps(t, mode+", of what the tokens look at", all, plain)
		for i, text := range texts {
			one := check.Get(m.Writer().HeatMaps(t.Context(), rowOf(b, i), [][]int32{text}))(t)
			if mode == "captioning" && len(text) == 3 { // the sum over its tokens is divided by how many there is room for
				for k := range one {
					one[k] *= 2. / 4
				}
			}
			sameMaps(t, fmt.Sprint(mode, " ", i), one, all[4*i:][:4])
		}
		nudges(t, m, name, 24, x, run)
		for _, bad := range [][][]int32{texts[:3], {{2}, {2, 3}, {2, 3}, {2, 3}}, {make([]int32, 12), {2, 3}, {2, 3}, {2, 3}}} {
			if _, err := m.Writer().HeatMaps(t.Context(), b, bad); err == nil {
				t.Errorf("maps of %v", bad)
			}
		}
	}
}
