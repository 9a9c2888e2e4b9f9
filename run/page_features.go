package run

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// embedder encodes some images of a split with one caption each.
type embedder struct {
	cfg      config.Config
	engine   *kernel.Engine
	model    Model
	tok      *tokenizer.Tokenizer
	set      *Split
	split    string
	points   int
	colour   string // attribute; empty: the default of the data
	progress func(phase string, done, total int)
}

// run returns the features for the page. Images are taken at even distances from the
// whole split.
func (e *embedder) run(ctx context.Context) (*pages.Features, error) {
	total := e.set.Len()
	n := min(e.points, total)
	chosen := make([]int, n)
	for i := range chosen {
		chosen[i] = i * total / n
	}
	if e.colour != "" && e.cfg.Has(section.TokenScores) {
		return nil, console.Argument(
			"--color %q: the model compares images and texts by their tokens (model.interaction), and has no features to colour: leave --color out", e.colour)
	}
	f := &pages.Features{N: n, Split: e.split, Seed: e.cfg.Run.Seed}
	for _, i := range chosen {
		f.Captions, f.IDs = append(f.Captions, e.caption(i)), append(f.IDs, e.set.ImageID(i))
	}
	if err := e.attribute(f, chosen); err != nil {
		return nil, err // before the work of encoding
	}
	encoding := tasks.Encoding{BatchSize: e.cfg.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0),
		Progress: func(phase string, done, total int) {
			if e.progress != nil {
				e.progress("report: "+phase, done, total)
			}
		}}
	m, images := e.model, tasks.Some{Gallery: e.set.Images(), Rows: chosen}
	var err error
	if x := partsOf(m).Interaction; x != nil {
		return f, e.pairs(ctx, f, encoding, retrieval.Member{Image: m.Image(), Text: m.Text(), Interaction: x,
			Images: images, Engine: e.engine}, chosen)
	}
	if e.cfg.Has(section.ImagesAlone) {
		f.C = m.Image().Width()
		f.Images, err = encoding.ClassTokens(ctx, m.Image(), images, "encoding images")
		return f, err
	}
	if f.C = m.Dim(); e.cfg.Has(section.Sentences) {
		texts, err := e.texts(chosen)
		if err != nil {
			return nil, err
		}
		f.OfTexts = true
		f.Images, err = encoding.Features(ctx, m.Text(), texts, "encoding texts")
		return f, err
	}
	if f.Images, err = encoding.Features(ctx, m.Image(), images, "encoding images"); err != nil {
		return nil, err
	}
	texts, err := e.texts(chosen)
	if err != nil {
		return nil, err
	}
	if f.Texts, err = encoding.Features(ctx, m.Text(), texts, "encoding texts"); err != nil {
		return nil, err
	}
	score, err := m.PairScore()
	if err == nil && score.String() != string(scoring.Cosine) {
		f.ScoreName = score.String()
		f.Score = func(images []float32, n int, texts []float32, t int, dst []float32) error {
			return score.Rows(e.engine, images, n, texts, t, dst)
		}
	}
	return f, err
}

// pairs scores the chosen images with their texts by tokens.
func (e *embedder) pairs(ctx context.Context, f *pages.Features, encoding tasks.Encoding, m retrieval.Member,
	chosen []int) (err error) {
	if m.Texts, err = e.texts(chosen); err != nil {
		return err
	}
	scores, err := m.Pairs(ctx, encoding)
	f.ScoreName = m.Name()
	f.Score = func(_ []float32, _ int, _ []float32, _ int, dst []float32) error {
		copy(dst, scores)
		return nil
	}
	return err
}

// draw adds what a page shows of the model to d: features, or scores of pairs where it compares tokens.
func (e *embedder) draw(ctx context.Context, d *pages.Data) error {
	f, err := e.run(ctx)
	if err != nil {
		return err
	}
	if e.cfg.Has(section.TokenScores) {
		d.Pairs, d.Notes = f, append(d.Notes, noFeatures)
		return nil
	}
	d.Features = f
	return nil
}

// texts are the first texts of the chosen images.
func (e *embedder) texts(chosen []int) (data.Gallery, error) {
	all, err := e.set.Texts(textColumns(e.cfg, e.tok))
	if err != nil {
		return nil, err
	}
	first := map[int]int{}
	for j := range all.Len() {
		if i := e.set.TextImage(j); !has(first, i) {
			first[i] = j
		}
	}
	some := tasks.Some{Gallery: all}
	for _, i := range chosen {
		some.Rows = append(some.Rows, first[i])
	}
	return some, nil
}

func has(m map[int]int, k int) bool { _, ok := m[k]; return ok }

// caption is the first caption of image i, or its name.
func (e *embedder) caption(i int) string {
	s := e.set.Eval
	if s == nil {
		return fmt.Sprintf("row %d", i)
	}
	if t := s.ImageTexts(i); len(t) > 0 {
		return s.Text(t[0])
	}
	return s.ImageName(i)
}

// learnedMetrics returns the learned metric of a model for the page, if it has one.
func learnedMetrics(cfg config.Config, p Model) []pages.Metric {
	m, err := p.Metric()
	if m == nil || err != nil || m.Weight == nil {
		return nil
	}
	page := pages.Metric{Name: encoders.MetricName(encoders.SimilaritySite), Form: m.Form, C: cfg.Model.Head.Dim,
		Weights: m.Weight}
	if m.Form == pages.BlockDiag {
		page.Blocks = m.Blocks
	}
	if g := cfg.Objective.GSSF; g.Form == encoders.MetricLowRank {
		page.Rank = g.LowRank(page.C)
	}
	return []pages.Metric{page}
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

// noFeatures is what a page says of a model that compares tokens.
const noFeatures = "The model compares images and texts by their tokens (model.interaction): there are scores of pairs, but no features to draw."

// Draw adds what a page shows of the model to d: learned metrics and features. Its scores
// need the engine: write the page before t is closed.
func (t *Trained) Draw(ctx context.Context, d *pages.Data, o FeatureOptions) error {
	if err := t.LoadForSplit(); err != nil {
		return err
	}
	set, err := t.Split(ctx, o.Split, o.Progress)
	if err != nil {
		return fmt.Errorf("%w\n(--no-model draws the curves alone)", err)
	}
	d.Metrics = learnedMetrics(t.Config, t.Model)
	e := embedder{cfg: t.Config, engine: t.Engine, model: t.Model, tok: t.Tokenizer, set: set,
		split: t.SplitName(o.Split), points: cmp.Or(o.Points, DefaultPoints), colour: o.Colour, progress: o.Progress}
	return e.draw(ctx, d)
}
