package objectives

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// localStep is a step of so many pairs over states of tokens and features before their norm, which heads without a
// layer map. Both sides have a class token, and texts a token behind their words.
type localStep struct {
	*Step
	b     *bench
	leaf  map[string]*gorgonia.Node
	batch *batch.Batch
}

// localRows are values by the names patches, words, image and text.
type localRows map[string][]float32

func newLocalStep(t testing.TB, x localRows, rows, c int, lengths, ids []int32) localStep {
	b := newBench(t)
	s := localStep{b: b, leaf: map[string]*gorgonia.Node{}, batch: batch.New(rows)}
	for name, v := range x {
		s.leaf[name] = b.floats(name, v, len(v)/c, c)
	}
	sp := space.Space{Dim: c, Spheres: 1}
	side := func(tokens, features string) Side {
		return Side{
			Sequence: encoders.Sequence{Tokens: s.leaf[tokens], Len: len(x[tokens]) / c / rows, Width: c, Begin: 1},
			Features: nn.L2Normalize(s.leaf[features], 1e-12), Head: encoders.Projection{Space: sp, Identity: true},
		}
	}
	s.Step = &Step{Inputs: feed.New(b.g), Rows: rows, Seed: 3, Scores: Scores{Space: sp}, Online: Sides{Image: side("patches", "image"), Text: side("words", "text")}}
	s.Online.Text.End, s.Online.Text.Lengths = 1, b.ints("lengths", lengths...)
	if ids != nil {
		s.IDs = s.Column(batch.Column{Name: batch.IDs, Type: batch.Int32}, rows)
		s.batch.SetInts(batch.IDs, ids)
	}
	return s
}

// run returns the loss of parts and its gradients in leaves. draws are set instead of what is drawn.
func (s localStep) run(parts []Part, draws map[string]any, leaves ...string) (loss float32, grads [][]float32) {
	t := s.b.t
	t.Helper()
	var wrt gorgonia.Nodes
	for _, name := range leaves {
		wrt = append(wrt, s.leaf[name])
	}
	outputs := gorgonia.Nodes{parts[0].Node}
	if len(wrt) > 0 {
		d := check.Get(gorgonia.Grad(parts[0].Node, wrt...))(t)
		outputs = append(outputs, d...)
	}
	m := s.b.compile(outputs...)
	check.OK(t, s.Inputs.Bind(m))
	check.OK(t, s.Inputs.Fill(m, &feed.Step{Batch: s.batch}))
	for name, v := range draws {
		switch to := s.Inputs.Memory(name).(type) {
		case []int32:
			copy(to, v.([]int32))
		case []float32:
			copy(to, v.([]float32))
		default:
			t.Fatalf("there is no input %s", name)
		}
	}
	check.OK(t, m.RunAll())
	for i, n := range outputs {
		a := check.Get(m.Value(n))(t)
		if i == 0 {
			loss = a.F32[0]
			continue
		}
		grads = append(grads, slices.Clone(a.F32))
	}
	return loss, grads
}

// vipmmLosses are the losses of the cases of vipmm.json.
var vipmmLosses = map[string]Loss{
	"word_patch mean":                  &WordPatch{Weighted: section.Weigh(1), Temperature: .5, ContextTemperature: .25, AttentionScale: 1},
	"word_patch scaled":                &WordPatch{Weighted: section.Weigh(1), Temperature: .5, ContextTemperature: .25, AttentionScale: 4},
	"word_patch sum":                   &WordPatch{Weighted: section.Weigh(1), Temperature: .5, ContextTemperature: .25, AttentionScale: 1, Reduce: "sum"},
	"word_patch ids":                   &WordPatch{Weighted: section.Weigh(1), Temperature: .5, ContextTemperature: .25, AttentionScale: 1},
	"token_image":                      &TokenImage{Weighted: section.Weigh(1), Margin: .5},
	"token_image without":              &TokenImage{Weighted: section.Weigh(1), Margin: .5},
	"text_swap":                        &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: .5},
	"text_swap recompute":              &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: .5, Recompute: true},
	"text_swap images":                 &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: .5, Images: true},
	"text_swap images recompute":       &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: .5, Images: true, Recompute: true},
	"text_swap batch":                  &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: .5, Attention: "batch"},
	"text_swap batch images recompute": &TextSwap{Weighted: section.Weigh(1), Margin: .2, Alpha: .5, Probability: .5, Attention: "batch", Images: true, Recompute: true},
}

// TestGoldenViPMM compares the losses over words and patches, and their gradients in states and features, with
// PyTorch's (tools/goldens/vipmm_losses.py): texts of several lengths, one of no words, and given draws.
func TestGoldenViPMM(t *testing.T) {
	cases := readGolden(t, "vipmm.json")
	if len(cases) != len(vipmmLosses) {
		t.Errorf("%d cases, %d of them are tested", len(cases), len(vipmmLosses))
	}
	for name, golden := range cases {
		ints := func(key string) (list []int32) {
			for _, v := range golden[key].Data {
				list = append(list, int32(v))
			}
			return list
		}
		rows, c := golden["image"].Shape[0], golden["image"].Shape[1]
		ids := ints("ids")
		if name != "word_patch ids" {
			ids = nil
		}
		x := localRows{}
		var leaves []string
		for _, key := range []string{"patches", "words", "image", "text"} {
			x[key] = golden[key].Data
			if slices.ContainsFunc(golden["d"+key].Data, func(v float32) bool { return v != 0 }) {
				leaves = append(leaves, key)
			}
		}
		s := newLocalStep(t, x, rows, c, ints("lengths"), ids)
		parts := vipmmLosses[name].Build(s.Step)
		draws := map[string]any{}
		if kind, _, _ := strings.Cut(name, " "); kind != "word_patch" {
			input := map[string]string{"token_image": "token_image negatives", "text_swap": "text_swap texts"}[kind]
			draws[input], draws[input+" there"] = ints("index"), golden["there"].Data
		}
		if strings.Contains(name, "images") {
			draws["text_swap images"], draws["text_swap images there"] = ints("images"), golden["images_there"].Data
		}
		loss, grads := s.run(parts, draws, leaves...)
		nearGolden(t, name, []float32{loss}, golden["out"].Data)
		for i, key := range leaves {
			nearGolden(t, name+" d"+key, grads[i], golden["d"+key].Data)
		}
	}
}
