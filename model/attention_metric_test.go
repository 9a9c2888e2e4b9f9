package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
)

// TestAttentionMetricStartsAsTheProduct: before its first update a model with a metric in its attention has the losses
// of the one without, bit for bit, and all its gradients, on every path of attention. It has weights where it is said
// to.
func TestAttentionMetricStartsAsTheProduct(t *testing.T) {
	systems := loraSystems(t) // styles and systems, with adapters
	plain := tinyConfig()
	systems["albef without adapters"] = plain
	half := tinyConfig()
	half.Compute.Precision = "bf16"
	systems["bf16"] = half
	for name, cfg := range systems {
		for _, metric := range []encoders.AttentionMetric{{Form: "diag", Heads: "own"}, {Form: "block_diag", Blocks: 2, Heads: "shared"}, {Form: "dense", Heads: "own", Where: []string{"image"}}} {
			with := cfg
			with.Model.AttentionMetric = metric
			base, m := build(t, cfg, "builtin", 2), build(t, with, "builtin", 2)
			want := forward(t, base, loraBatch(base), Control{Alpha: 0.4})
			got := forward(t, m, loraBatch(m), Control{Alpha: 0.4})
			if got.Loss != want.Loss || !slices.Equal(got.Parts, want.Parts) {
				t.Errorf("%s, %+v: %v, without %v", name, metric, got.Parts, want.Parts)
			}
			places := map[string]int{}
			for _, q := range m.params.List() {
				if strings.HasSuffix(q.Name, "/"+encoders.MetricName(encoders.SimilaritySite)) {
					places[q.Name[:strings.Index(q.Name, "/")]]++
					if q.Locked || !m.Learnable(q.Name) || q.Group != encoders.GroupMetric {
						t.Errorf("%s, %s: %+v", name, q.Name, q.Traits)
					}
					continue
				}
				p, _ := base.params.Get(q.Name)
				if !q.Locked && !sameBits(m.params.Grad(q), base.params.Grad(p)) {
					t.Errorf("%s, %+v: the gradient of %s is another", name, metric, q.Name)
				}
			}
			wanted := map[string]int{"image": cfg.Model.Image.Depth}
			if len(metric.Where) == 0 && !cfg.Has(section.ImagesAlone) {
				wanted["text"] = cfg.Model.Text.Layers
				if cfg.Model.System == "albef" {
					wanted["text"] += 2 * cfg.Model.Text.FusionLayers
				}
			}
			for place, n := range wanted {
				if places[place] != n {
					t.Errorf("%s, %+v: %v metrics, want %v", name, metric, places, wanted)
				}
			}
			if len(places) != len(wanted) {
				t.Errorf("%s, %+v: metrics at %v, want %v", name, metric, places, wanted)
			}
		}
	}
}
