package export

import (
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/weights"
)

// score is that by which the features of the model are compared.
func (x *job) score() (scoring.Score, error) {
	return model.StoredScore(x.Config, func(name string, shape ...int) ([]float32, error) {
		p, ok := x.params[name]
		if !ok {
			return nil, nil
		}
		v := make([]float32, size(shape))
		return v, p.Read(v)
	})
}

// folded is the matrix (C, C) by which rows of image features are multiplied so that their products with texts are the
// score; nil where these are the features themselves, or where the score is no product.
func (x *job) folded() ([]float32, error) {
	s, err := x.score()
	if err != nil || !s.Folds() || s.Identity() || x.Config.Has(section.TokenScores) {
		return nil, err
	}
	c := s.Space.Dim
	identity, fold := make([]float32, c*c), make([]float32, c*c)
	for i := range c {
		identity[i*c+i] = 1
	}
	return fold, s.FoldImages(fold, identity, c)
}

// comparesByMetric refuses the projection of images of a model with a learned metric: it is folded into images of unit
// length.
func (x *job) comparesByMetric() error {
	s, err := x.score()
	if err != nil || s.Folds() && s.Identity() {
		return err
	}
	return x.refuse("eval.score", s.String(),
		"the score reads features of unit length, and this class gives them before their norm", asONNX,
		"--set eval.score=cosine")
}

// foldAttention folds the learned metrics of attention (model.attention_metric) into the layers that make keys, W k =
// (W K) x + W b, so that every form has them.
func (x *job) foldAttention() {
	if x.Config.Model.AttentionMetric.Form == "" || x.To == Geoalign || x.To == PEFT {
		return
	}
	var list []weights.Param
	for _, side := range []*[]weights.Param{&x.Params, &x.Twins} {
		list = list[:0:0]
		metrics := map[string]weights.Param{} // by the path of the attention
		for _, p := range *side {
			if at, ok := strings.CutSuffix(p.Name, "/gssf/weight"); ok && !strings.Contains(at, "/graph/") {
				metrics[at] = p
			}
		}
		for _, p := range *side {
			at, layer := p.Name, ""
			for _, s := range []string{"/qkv/weight", "/qkv/bias", "/kv/weight", "/kv/bias"} {
				if before, ok := strings.CutSuffix(p.Name, s); ok {
					at, layer = before, s
				}
			}
			w, ok := metrics[at]
			switch {
			case metrics[strings.TrimSuffix(p.Name, "/gssf/weight")].Read != nil: // it is folded
				continue
			case ok && layer != "":
				p = keyed(p, w, strings.HasPrefix(layer, "/qkv"))
			}
			list = append(list, p)
		}
		*side = list
	}
	x.Config.Model.AttentionMetric = config.Default().Model.AttentionMetric
	x.note("metrics of attention (model.attention_metric) are folded into the layers of their keys")
}

// keyed is the weight or bias of a layer of keys and values, or with queries of these before them, with W applied to
// the keys.
func keyed(p, w weights.Param, queries bool) weights.Param {
	read := p.Read
	p.Read = func(dst []float32) error {
		m := make([]float32, size(w.Shape))
		if err := read(dst); err != nil {
			return err
		}
		if err := w.Read(m); err != nil {
			return err
		}
		rows, in := p.Shape[0]/2, size(p.Shape[1:])
		keys := dst[:rows*in]
		if queries {
			rows = p.Shape[0] / 3
			keys = dst[rows*in : 2*rows*in]
		}
		d := 1
		if len(w.Shape) > 1 {
			d = w.Shape[len(w.Shape)-1]
		}
		old := append([]float32(nil), keys...)
		clear(keys)
		for i := range rows { // of the blocks one after the other, again for each head that has them
			for j := range d {
				v := m[(i/d*d*d+i%d*d+j)%len(m)]
				for k, x := range old[(i/d*d+j)*in:][:in] {
					keys[i*in+k] += v * x
				}
			}
		}
		return nil
	}
	return p
}

// size is the number of elements of a shape.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
