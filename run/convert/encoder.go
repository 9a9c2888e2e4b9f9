package convert

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/weights"
)

// encoderSettings are the settings of a system of one encoder: those of its tower, its head, and how texts are read.
func encoderSettings(m *weights.Model) (list []weights.Setting, err error) {
	e := m.Encoder
	list = m.Settings()
	set := func(key string, v any) {
		list = slices.DeleteFunc(list, func(s weights.Setting) bool { return s.Key == key })
		_, value, _ := strings.Cut(config.Override(key, v), "=")
		list = append(list, weights.Setting{Key: key, Value: value})
	}
	var sets []string
	for _, s := range list {
		sets = append(sets, s.String())
	}
	tower, err := config.Default().With(sets...) // for its width
	if err != nil {
		return nil, err
	}
	set("model.system", e.Side+"_encoder")
	dim, identity := tower.Model.Text.Width, e.Side
	if e.Side == "image" {
		dim = tower.Model.Image.TokenWidth()
	}
	if shape := m.Shape(e.Side + "_proj/weight"); len(shape) > 0 {
		dim, identity = shape[0], ""
	}
	layers := []string{}
	for _, l := range e.Dense {
		dim, layers = l.Width, append(layers, l.String())
	}
	set("model.head.dim", dim)
	set("model.head.identity", identity)
	set("model.head.dense", layers)
	set("model.head.topology", map[bool]string{true: "sphere", false: "euclid"}[e.Unit])
	set("data.views", 1)
	if e.Side == "image" {
		return list, nil
	}
	clean := data.CleanNone
	if e.Lower {
		clean = data.CleanLower
	}
	set("data.clean", clean)
	set("data.prompts", append([]string{}, e.Prompts...))
	set("data.prompt", e.Prompt)
	set("eval.sentences.feature", sentences.HeadFeature)
	if !slices.ContainsFunc(list, func(s weights.Setting) bool { return s.Key == "data.tokens" }) {
		set("data.tokens", tower.Model.Text.Positions) // texts are cut where the table of positions ends
	}
	return list, nil
}
