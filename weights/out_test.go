package weights

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// paramsOf are the parameters of a model.
func paramsOf(t *testing.T, m *Model) (list []Param) {
	t.Helper()
	for _, name := range m.Names() {
		v := values(t, m, name)
		list = append(list, Param{Name: name, Shape: m.Shape(name), Read: func(dst []float32) error { copy(dst, v); return nil }})
	}
	return list
}

// The tables in reverse give every tensor of the packages' own files that a parameter is made of: its name, shape and numbers.
func TestRenamed(t *testing.T) {
	for name, o := range map[string]Naming{
		"bert":             {Family: "bert"},
		"roberta":          {Family: "roberta", Padding: 2},
		"mpnet":            {Family: "mpnet", Padding: 2, Prefer: []string{""}},
		"vit":              {Family: "vit"},
		"deit":             {Family: "vit", Prefer: []string{"deit.", "distillation_token"}, Registers: 1},
		"dinov2":           {Family: "dinov2", Prefer: []string{""}},
		"dinov2_registers": {Family: "dinov2", Prefer: []string{"", "mlp.weights_"}},
		"timm":             {Family: "timm"},
		"timm_siglip":      {Family: "timm"},
		"clip":             {Family: "clip"},
		"siglip":           {Family: "siglip"},
		"open_clip":        {Family: "open_clip"},
		"open_clip_siglip": {Family: "open_clip_timm", Prefer: []string{"text.", "text_projection.weight"}},
		"open_clip_vit":    {Family: "open_clip_timm", Prefer: []string{"text."}},
		"albef":            {Family: "albef"},
		"clip_mtob":        {Family: "clip-mtob"},
		"clip_mtob_ref":    {Family: "clip-mtob"},
		"resnet18":         {Family: "resnet"},
		"resnet_hf":        {Family: "resnet_hf", Prefer: []string{"resnet."}},
	} {
		m := open1(t, golden(name))
		list, err := Renamed(paramsOf(t, m), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, p := range list {
			tensor, ok := m.file.Lookup(p.Name)
			if !ok || !slices.Equal(tensor.Shape, p.Shape) && !(len(tensor.Shape) == 0 && len(p.Shape) == 0) {
				t.Errorf("%s: %s of shape %v, want %v", name, p.Name, p.Shape, tensor)
				continue
			}
			got, want := make([]float32, count(p.Shape)), make([]float32, count(p.Shape))
			check.OK(t, p.Read(got))
			check.OK(t, tensor.Read(want, 0))
			for i, w := range want {
				// Rows of padding, of token types and of registers are in other parameters, or in none.
				folded := strings.Contains(p.Name, "position_embeddings") || strings.Contains(p.Name, "token_type_embeddings") || strings.Contains(p.Name, "distillation_token")
				if got[i] != w && !(folded && o.Padding+o.Registers > 0) && !(p.Name == "logit_scale" && math.Abs(float64(got[i]-w)) < 1e-6) {
					t.Errorf("%s: %s has %v at %d, want %v", name, p.Name, got[i], i, w)
					break
				}
			}
		}
		if want := len(m.file.Names()) - len(m.Report().Unneeded); len(list) != want {
			t.Errorf("%s: %d tensors, want %d", name, len(list), want)
		}
	}
}

// A family that lacks parameters, or has no tensors for some, is an error that names them.
func TestRenamedRefuses(t *testing.T) {
	all := paramsOf(t, open1(t, golden("clip")))
	without := func(name string) []Param {
		return slices.DeleteFunc(slices.Clone(all), func(p Param) bool { return p.Name == name })
	}
	other := append(slices.Clone(all), Param{Name: "itm_head/weight", Shape: []int{2}})
	for want, c := range map[string]struct {
		params []Param
		family string
	}{
		`there is no family "gguf": use one of bert,`:                     {all, "gguf"},
		"has image/blocks/01/norm1/weight, which are not there":           {without("image/blocks/01/norm1/weight"), "clip"},
		"models of family clip have no tensors for itm_head/weight":       {other, "clip"},
		"a model of family siglip has image/patch_embed/bias, text_proj/": {all, "siglip"},
	} {
		check.Fails(Renamed(c.params, Naming{Family: c.family}))(t, want)
	}
}
