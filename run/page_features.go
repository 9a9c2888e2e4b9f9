package run

import (
	"cmp"
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
)

// towers is a model of images and texts.
type towers interface {
	tasks.ImageTower
	tasks.TextTower
	Dim() int
	PairScore() scoring.Score
}

// embedder encodes some images of a split with one caption each.
type embedder struct {
	cfg      config.Config
	engine   *kernel.Engine
	model    any
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
	some := chosenSet{e.set, chosen, f.Captions}
	encoding := tasks.Encoding{BatchSize: e.cfg.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0),
		Progress: func(phase string, done, total int) {
			if e.progress != nil {
				e.progress("report: "+phase, done, total)
			}
		}}
	if m, ok := e.model.(towers); ok && !e.cfg.Model.ImagesOnly() {
		f.C = m.Dim()
		err := encoding.EncodeImages(ctx, m, some, func(_ int, _, features []float32) { f.Images = append(f.Images, features...) })
		if err != nil {
			return nil, err
		}
		err = encoding.EncodeTexts(ctx, m, e.tok, some, func(_ int, _ []int32, _, features []float32) { f.Texts = append(f.Texts, features...) })
		if err != nil {
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
	var err error
	f.Images, err = classTokens(ctx, encoding, m, some)
	return f, err
}

// classTokens returns the final class token of every image, before any head: (n, D).
func classTokens(ctx context.Context, e tasks.Encoding, m tasks.ImageModel, set data.Gallery) ([]float32, error) {
	d := m.ImageWidth()
	out := make([]float32, 0, set.NumImages()*d)
	err := e.EncodeImages(ctx, m, set, func(k int, states, _ []float32) {
		for i := range k {
			out = append(out, states[i*m.ImageTokens()*d:][:d]...)
		}
	})
	return out, err
}

// caption is the first caption of image i; empty where there is none.
func (e *embedder) caption(i int) string {
	if t := e.set.ImageTexts(i); len(t) > 0 {
		return e.set.Text(t[0])
	}
	return e.set.ImageName(i)
}

// chosenSet is some images of a split, each with one caption.
type chosenSet struct {
	set      *data.Eval
	chosen   []int
	captions []string
}

func (s chosenSet) LoadImage(i int, dst []float32) error { return s.set.LoadImage(s.chosen[i], dst) }
func (s chosenSet) NumImages() int                       { return len(s.chosen) }
func (s chosenSet) Text(j int) string                    { return s.captions[j] }
func (s chosenSet) NumTexts() int                        { return len(s.captions) }

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

// DefaultPoints is the number of images that a page embeds unless asked otherwise.
const DefaultPoints = 500

// FeatureOptions say which features a page shows.
type FeatureOptions struct {
	Split  string // empty: eval.split
	Points int    // images, each with one caption; 0: DefaultPoints
	Colour string // attribute that colours the points; empty: the default of the data
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// Draw adds what a page shows of the model to d: learned metrics and features. Its scores
// need the engine: write the page before t is closed.
func (t *Trained) Draw(ctx context.Context, d *pages.Data, o FeatureOptions) error {
	if err := t.Load(); err != nil {
		return err
	}
	set, err := t.Split(o.Split)
	if err != nil {
		return fmt.Errorf("%w\n(--no-model draws the curves alone)", err)
	}
	d.Metrics = learnedMetrics(t.Config, t.Model.Params())
	e := embedder{cfg: t.Config, engine: t.Engine, model: t.Model, tok: t.Tokenizer, set: set, split: t.split(o.Split),
		points: cmp.Or(o.Points, DefaultPoints), colour: o.Colour, progress: o.Progress}
	d.Features, err = e.run(ctx)
	return err
}
