package convert

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/folder"
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

// templateOf is data.template of the tokenizer beside weights.
func templateOf(m *weights.Model) string {
	switch {
	case m.Encoder.Known:
		return source.TemplateKnown
	case m.Encoder.Bare:
		return source.TemplateBare
	}
	return source.TemplateFile
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
	t, err := used(m, path, o)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return t, nil
}

// used opens the model of stored weights, which it owns.
func used(m *weights.Model, path string, o run.OpenOptions) (*run.Trained, error) {
	if err := unlike(m); err != nil {
		return nil, err
	}
	r := described(m.Path(), m)
	cfg, err := r.config(m, ImportOptions{File: o.File, Set: o.Set, use: true, Log: o.Log})
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(m)
	if err != nil {
		return nil, err
	}
	open := func(engine *compute.Engine) (*model.Model, *tokenizer.Tokenizer, error) {
		tok, err := r.tokenizer(cfg)
		if err != nil {
			return nil, nil, err
		}
		p, err := train.OpenWeights(cfg, train.ModelOptions{Engine: engine, Tokenizer: tok, Rows: wordRows(m), Start: m})
		return p, tok, err
	}
	return run.Use(cfg, run.Stored{Path: path, Sum: sum, Open: open, Close: m.Close}, o.Log), nil
}

// sumOf identifies stored weights and how they are used. Their files are read once; the user's book knows them then.
func sumOf(m *weights.Model) (string, error) {
	sum, err := identity.User().SumOf(context.Background(), m.Path()+" and its shards", m.Files())
	if err != nil {
		return "", err
	}
	_ = identity.User().Save() // else they are read another time
	l := identity.NewList()
	l.Add(sum.String())
	for _, s := range m.Settings() {
		l.Add(s.Key, s.Value)
	}
	return l.Sum().String(), nil
}
