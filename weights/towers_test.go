package weights

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
)

// The settings of every golden model make a model of this module, which computes what its package computes. States are
// compared where both have the same (a package's CLIP gives those of images before their last norm), features
// where there are any.
func TestTowersCompute(t *testing.T) {
	for _, c := range []struct {
		name                   string
		imageStates, imagePool string // in expected.safetensors; empty: not compared
		textStates             string
		sets                   []string
	}{
		{"bert", "", "", "hidden", []string{"model.text.pool=pooler"}},
		{"roberta", "", "", "hidden", nil},
		{"mpnet", "", "", "hidden", []string{"model.text.pool=pooler"}},
		{"vit", "hidden", "pooled", "", nil},
		{"deit", "", "pooled", "", nil},
		{"dinov2", "hidden", "pooled", "", nil},
		{"dinov2_registers", "", "pooled", "", nil},
		{"timm", "hidden", "pooled", "", nil},
		{"timm_registers", "", "pooled", "", nil},
		{"timm_siglip", "hidden", "pooled", "", nil},
		{"deit_distilled", "", "pooled", "", []string{"model.image.heads=2"}},
		{"clip", "", "image_features", "text_hidden", nil},
		{"siglip", "image_hidden", "image_features", "text_hidden", nil},
		{"open_clip", "", "image_features", "", nil},
		{"open_clip_siglip", "", "image_features", "", []string{"model.image.heads=2"}},
		{"open_clip_vit", "", "image_features", "", []string{"model.image.heads=2"}},
		{"open_clip_resnet", "", "image_features", "", nil},
		{"open_clip_roberta", "", "image_features", "", nil},
		{"open_clip_coca", "", "image_features", "", nil},
		{"clip_mtob", "", "image_features", "", []string{"model.image.heads=2", "model.text.heads=2", "model.text.positions=21"}},
		{"clip_mtob_ref", "", "image_features", "", []string{"model.image.heads=2", "model.text.heads=2"}},
		{"albef", "image_hidden", "", "text_hidden", []string{"model.image.heads=2", "model.text.heads=2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, e := open1(t, golden(c.name)), expect(t, c.name)
			sets := []string{"data.tokens=6", "train.batch_size=2", "model.text.positions=6"}
			if m.Encoder.Side != "" { // one tower: the other one is never built
				sets = append(sets, "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0",
					"model.head.dim=8", "model.head.identity=both", "model.head.topology=euclid", "objective.itc.score=inner", "model.image.width=8", "model.image.heads=2", "model.text.width=8", "model.text.heads=2")
			}
			for _, s := range m.Settings() {
				sets = append(sets, s.String())
			}
			cfg := check.Get(config.Parse("", nil, append(sets, c.sets...)))(t)
			engine := check.Get(compute.New(compute.Options{Threads: 1}))(t)
			p := check.Get(model.Open(cfg, model.Options{Engine: engine, Vocab: 24}, m))(t)
			t.Cleanup(func() { p.Close() })
			b := batch.New(2)
			if m.Encoder.Side != "text" {
				b.SetFloats(batch.Images, e.floats("pixel_values"))
				states, features := check.Get2(p.Image().Encode(t.Context(), b))(t)
				if c.imageStates != "" {
					near(t, "image states", states, e.floats(c.imageStates), 8, nil)
				}
				if c.imagePool != "" {
					near(t, "image features", features, e.floats(c.imagePool), 8, nil)
				}
			}
			if m.Has("text/embeddings/word/weight") {
				lengths := e.ints("lengths")
				b.SetInts(batch.Tokens, e.ints("input_ids"))
				b.SetInts(batch.Lengths, lengths)
				states, features := check.Get2(p.Text().Encode(t.Context(), b))(t)
				if c.textStates != "" {
					near(t, "text states", states, e.floats(c.textStates), 8, padding(lengths, 6))
				}
				if m.Has("text/pooler/weight") {
					near(t, "text features", features, pooled(t, m, e.floats("hidden")), 8, nil)
				}
				for _, name := range m.Report().Unread {
					if tower := strings.HasPrefix(name, "image") || strings.HasPrefix(name, "text") && !strings.HasPrefix(name, "text/mlm"); tower && c.name != "albef" {
						t.Errorf("nothing read %s", name)
					}
				}
				if m.Encoder.Side == "" && c.name != "albef" {
					near(t, "text features", features, e.floats("text_features"), 8, nil)
				}
			}
		})
	}
}

// pooled is the pooler of BERT over the first of six states (2, 6, 8) of each text.
func pooled(t *testing.T, m *Model, states []float32) (rows []float32) {
	t.Helper()
	w, b := make([]float32, 8*8), make([]float32, 8)
	check.OK(t, errors.Join(m.Read("text/pooler/weight", []int{8, 8}, w), m.Read("text/pooler/bias", []int{8}, b)))
	for ; len(states) > 0; states = states[6*8:] {
		for i, sum := range b {
			for k, v := range states[:8] {
				sum += w[i*8+k] * v
			}
			rows = append(rows, float32(math.Tanh(float64(sum))))
		}
	}
	return rows
}
