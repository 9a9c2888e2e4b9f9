package export_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights"
)

// withoutAdapters is a model as it was before it was tuned: it has no adapters, and its heads were others.
func withoutAdapters(t *testing.T, m export.Model) export.Model {
	var list []weights.Param
	for _, p := range m.Params {
		if _, own := filepath.Split(p.Name); own == encoders.LoRADown || own == encoders.LoRAUp {
			continue
		}
		if strings.Contains(p.Name, "_proj/") {
			x := numbers(t, p)
			p.Read = func(dst []float32) error {
				for i := range dst {
					dst[i] = x[i] + 1
				}
				return nil
			}
		}
		list = append(list, p)
	}
	m.Params, m.Config.Model = list, m.Config.Model.Folded()
	return m
}

// Adapters that are written for PEFT and merged into the weights that they are of give W + alpha/rank B A, and what is trained
// beside them comes along.
func TestAdapters(t *testing.T) {
	for _, c := range []struct {
		name, side, class string
		layers, whole     int // of PEFT
	}{
		{"vit_bert", "text", "BertModel", 8, 0}, {"deit_roberta", "text", "RobertaModel", 8, 0},
		{"dinov2_mpnet", "text", "MPNetModel", 8, 0}, {"vit_pooler", "text", "BertModel", 8, 1},
		{"clip", "", "CLIPModel", 16, 2}, {"clip", "image", "CLIPVisionModelWithProjection", 8, 1},
	} {
		what := c.name + " " + c.side
		x := exporttest.New(t, exporttest.Find(t, c.name, "model.lora.rank=2", "model.lora.alpha=3"))
		base := filepath.Join(t.TempDir(), "base")
		check.Get(export.Write(withoutAdapters(t, x.Model), export.Options{To: export.HF, Side: c.side, Out: base}))(t)
		w := written(t, x, export.Options{To: export.PEFT, Side: c.side, Base: "some/base"})
		var config struct {
			Base    string   `json:"base_model_name_or_path"`
			Targets []string `json:"target_modules"`
			Saved   []string `json:"modules_to_save"`
		}
		check.OK(t, json.Unmarshal(check.Get(os.ReadFile(filepath.Join(w.Path, "adapter_config.json")))(t), &config))
		for _, target := range config.Targets {
			if strings.HasPrefix(target, "bert.") || strings.HasPrefix(target, "roberta.") || strings.HasPrefix(target, "mpnet.") {
				t.Errorf("%s: no %s has a module %s", what, w.Class, target)
			}
		}
		if w.Class != c.class || len(config.Targets) != c.layers || len(config.Saved) != c.whole || config.Base != "some/base" {
			t.Errorf("%s: %s with %+v", what, w.Class, config)
		}
		m := check.Get(weights.OpenAdapted(base, "", w.Path))(t)
		if notes := strings.Join(m.Notes, "\n"); !strings.Contains(notes, "from "+w.Path+" are merged") {
			t.Errorf("%s: notes %q", what, notes)
		}
		adapted := 0
		for _, p := range x.Params {
			if !m.Has(p.Name) || p.Name == "temperature" || p.Name == "logit_scale" {
				continue
			}
			want, got := numbers(t, p), make([]float32, len(numbers(t, p)))
			check.OK(t, m.Read(p.Name, p.Shape, got))
			layer, own := filepath.Split(p.Name)
			if i := slices.IndexFunc(x.Params, func(q weights.Param) bool { return q.Name == layer+encoders.LoRADown }); i >= 0 && own == "weight" {
				a, b := numbers(t, x.Params[i]), numbers(t, x.Params[i+1])
				if x.Params[i+1].Name != layer+encoders.LoRAUp {
					t.Fatalf("%s stands behind %s", x.Params[i+1].Name, x.Params[i].Name)
				}
				in := p.Shape[1]
				for o := range p.Shape[0] {
					for j := range in {
						want[o*in+j] += 3. / 2 * (b[2*o]*a[j] + b[2*o+1]*a[in+j])
					}
				}
				adapted++
			}
			for i, v := range want {
				if math.Abs(float64(got[i]-v)) > 1e-5 {
					t.Fatalf("%s: %s: element %d is %g, want %g", what, p.Name, i, got[i], v)
				}
			}
		}
		if adapted == 0 {
			t.Errorf("%s: no layer was compared", what)
		}
		check.OK(t, m.Close())
		check.Fails(weights.Open(w.Path))(t, "has an adapter and not the weights that it is put into: import --from some/base --adapter "+w.Path)
	}
}

// What adapters of PEFT cannot hold is refused by its key.
func TestAdaptersRefused(t *testing.T) {
	for _, c := range []struct{ name, side, set, want string }{
		{"vit_bert", "text", "model.lora.rank=0", "model.lora.rank = 0 cannot be told to peft: the model has no adapters: use --to hf"},
		{"vit_bert", "text", "model.tuning.bitfit=true", `model.tuning.bitfit = "on" cannot be told to peft`},
		{"vit_bert", "text", "model.tuning.metric=diag", `model.tuning.metric = "diag" cannot be told to peft`},
		{"clip_attended", "", "model.lora.rank=2", `model.attention_metric.form = "block_diag" cannot be told to peft`},
		{"siglip", "image", "model.lora.rank=2", `model.image.style = "siglip" cannot be told to peft: PEFT finds layers by their names, and those within SiglipVisionModel are not the same in all versions`},
		{"vit_bert", "image", "model.lora.rank=2", `model.image.style = "vit" cannot be told to peft: PEFT finds layers by their names, and those within ViTModel`},
		{"vit_bert", "text", `model.lora.layers=["image/blocks/*/attn/*"]`, "no layer of BertModel has an adapter"},
	} {
		x := exporttest.New(t, exporttest.Find(t, c.name, "model.lora.rank=2", c.set))
		out := filepath.Join(t.TempDir(), "out")
		check.Fails(export.Write(x.Model, export.Options{To: export.PEFT, Side: c.side, Out: out}))(t, c.want)
	}
}
