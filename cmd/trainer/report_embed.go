package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives/scoring"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train"
)

// towers is what a report needs of a model of images and texts.
type towers interface {
	EncodeImages(images []float32, n int) (states, features []float32, err error)
	EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error)
	ImageSize() int
	TextTokens() int
	Dim() int
	PairScore() scoring.Score
}

// embedder encodes some images of a split with one caption each.
type embedder struct {
	cfg      config.Config
	engine   *kernel.Engine
	model    train.System
	tok      *tokenizer.Tokenizer
	set      *data.Eval
	split    string
	points   int
	colour   string // attribute; empty: the default of the data
	progress func(phase string, done, total int)
}

// run returns the features for the page. Images are taken at even distances from the
// whole split.
func (e *embedder) run(ctx context.Context) (*pages.Features, error) {
	total := e.set.NumImages()
	n := min(e.points, total)
	chosen := make([]int, n)
	for i := range chosen {
		chosen[i] = i * total / n
	}
	f := &pages.Features{N: n, Split: e.split, Seed: e.cfg.Run.Seed}
	for _, i := range chosen {
		f.Captions = append(f.Captions, e.caption(i))
	}
	if err := e.attribute(f, chosen); err != nil {
		return nil, err // before the work of encoding
	}
	if m, ok := e.model.(towers); ok && !e.cfg.Model.ImagesOnly() {
		f.C = m.Dim()
		encode := func(pixels []float32, b int) ([]float32, error) {
			_, features, err := m.EncodeImages(pixels, b)
			return features, err
		}
		var err error
		if f.Images, err = e.images(ctx, chosen, m.ImageSize(), f.C, f.C, encode); err != nil {
			return nil, err
		}
		if f.Texts, err = e.texts(ctx, m, f.Captions); err != nil {
			return nil, err
		}
		if score := m.PairScore(); score.String() != string(scoring.Cosine) {
			f.ScoreName = score.String()
			f.Score = func(images []float32, n int, texts []float32, t int, dst []float32) error {
				return score.Rows(e.engine, images, n, texts, t, dst)
			}
		}
		return f, nil
	}
	m, ok := e.model.(tasks.ImageModel)
	if !ok {
		return nil, fmt.Errorf("model.system %q has no image encoder", e.cfg.Model.System)
	}
	f.C = m.ImageWidth()
	encode := func(pixels []float32, b int) ([]float32, error) {
		states, _, err := m.EncodeImages(pixels, b)
		return states, err
	}
	var err error
	f.Images, err = e.images(ctx, chosen, m.ImageSize(), f.C, m.ImageTokens()*f.C, encode)
	return f, err
}

// caption is the first caption of image i; empty where there is none.
func (e *embedder) caption(i int) string {
	if t := e.set.ImageTexts(i); len(t) > 0 {
		return e.set.Text(t[0])
	}
	return e.set.ImageName(i)
}

// images returns the first c numbers of every stride that encode gives, the features or
// the class tokens of the chosen images.
func (e *embedder) images(ctx context.Context, chosen []int, size, c, stride int, encode func([]float32, int) ([]float32, error)) ([]float32, error) {
	b, row := min(e.cfg.Eval.BatchSize, len(chosen)), 3*size*size
	pixels := make([]float32, b*row)
	out := make([]float32, 0, len(chosen)*c)
	some := chosenSet{e.set, chosen}
	for first := 0; first < len(chosen); first += b {
		k := min(b, len(chosen)-first)
		if err := data.LoadImages(ctx, some, first, k, pixels[:k*row], runtime.GOMAXPROCS(0)); err != nil {
			return nil, err
		}
		x, err := encode(pixels, b)
		if err != nil {
			return nil, err
		}
		for i := range k {
			out = append(out, x[i*stride:][:c]...)
		}
		e.progress("report: images", first+k, len(chosen))
	}
	return out, nil
}

// chosenSet is a part of a split in another order.
type chosenSet struct {
	*data.Eval
	chosen []int
}

func (s chosenSet) LoadImage(i int, dst []float32) error { return s.Eval.LoadImage(s.chosen[i], dst) }
func (s chosenSet) NumImages() int                       { return len(s.chosen) }

// texts returns the features (n, C) of captions.
func (e *embedder) texts(ctx context.Context, m towers, captions []string) ([]float32, error) {
	n := len(captions)
	b, l := min(e.cfg.Eval.BatchSize, n), m.TextTokens()
	batch := make([]string, b)
	ids, lengths := make([]int32, b*l), make([]int32, b)
	out := make([]float32, 0, n*m.Dim())
	for first := 0; first < n; first += b {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range batch { // a short last batch repeats its last text
			batch[i] = captions[min(first+i, n-1)]
		}
		if err := data.TokenBatch(e.tok, batch, l, ids, lengths); err != nil {
			return nil, err
		}
		_, x, err := m.EncodeTexts(ids, lengths, b)
		if err != nil {
			return nil, err
		}
		k := min(b, n-first)
		out = append(out, x[:k*m.Dim()]...)
		e.progress("report: texts", first+k, n)
	}
	return out, nil
}

// metricParam is the parameter of the learned metric of pairs.
const metricParam = "gssf/weight"

// learnedMetrics returns the learned metric of a model for the page, if it has one.
func learnedMetrics(cfg config.Config, p *model.Params) []pages.Metric {
	q, ok := p.Get(metricParam)
	if !ok || cfg.Objective.GSSF.Form == "cosine" {
		return nil
	}
	m := pages.Metric{Name: metricParam, Form: cfg.Objective.GSSF.Form, C: cfg.Model.Head.Dim, Weights: p.Value(q)}
	if m.Form == pages.BlockDiag {
		m.Blocks = cfg.MetricBlocks()
	}

	return []pages.Metric{m}
}
