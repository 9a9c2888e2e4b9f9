package convert

import (
	"errors"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
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
		clean = data.CleanLowercase
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

// Open opens what is at path to be used as it is: a run or step folder, or stored weights, by the configuration that
// Import gives them. A file o.File comes before the settings of weights. Close the result after use.
func Open(path string, o run.OpenOptions) (*run.Trained, error) {
	if folder.HasRun(path) || checkpoint.IsStep(path) {
		return run.Open(path, o)
	}
	m, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	t, err := used(m, o)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return t, nil
}

// used opens the model of stored weights, which it owns.
func used(m *weights.Model, o run.OpenOptions) (*run.Trained, error) {
	if err := unlike(m); err != nil {
		return nil, err
	}
	r := described(m.Path(), m)
	cfg, err := r.config(m, ImportOptions{File: o.File, Set: o.Set, Log: o.Log})
	if err != nil {
		return nil, err
	}
	tok, err := tokenizerOf(cfg)
	if err != nil {
		return nil, err
	}
	engine, err := setup.Engine(cfg)
	if err != nil {
		return nil, err
	}
	model, err := train.OpenWeights(cfg, train.ModelOptions{Engine: engine, Tokenizer: tok, Rows: wordRows(m), Start: m})
	if err != nil {
		engine.Close()
		return nil, err
	}
	return run.Use(cfg, engine, model, tok, m, o.Log), nil
}
