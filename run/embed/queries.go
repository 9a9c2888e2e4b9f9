package embed

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/tasks"
)

// Queries encodes single texts and images by the model of a gallery, as the rows of the gallery
// were. It is for one goroutine at a time. Close it after use.
type Queries struct {
	*run.Trained
	rows   rowEncoder
	widths map[string]int // of the stored features of each side; nil where the model reads none
}

// OpenQueries opens the checkpoint or the stored weights that a gallery names, or those at path. They must have the
// channels and the score of the gallery.
func OpenQueries(g *gallery.Gallery, path string, o run.OpenOptions) (*Queries, error) {
	if g == nil {
		return nil, errors.New("run: OpenQueries needs a gallery (got nil): open one with gallery.Open")
	}
	named := path == ""
	if named {
		var err error
		if path, err = g.Checkpoint(); err != nil {
			return nil, err
		}
	}
	if s := g.Meta.EvalScore; s != "" {
		o.Set = append([]string{"eval.score=" + s}, o.Set...)
	}
	sets, err := readAs(g.Meta.Reading)
	if err != nil {
		return nil, fmt.Errorf("the gallery %s: %w", g.Path, err)
	}
	o.Set = append(sets, o.Set...)
	o.Twin = g.Meta.Twin
	t, err := convert.Open(path, o)
	if err != nil && g.Meta.Twin {
		err = fmt.Errorf("the gallery %s was made with --momentum-encoder: %w", g.Path, err)
	}
	if err != nil {
		return nil, err
	}
	q, err := NewQueries(g, t)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	step, weights := t.Step(), t.Weights()
	switch other := weights != "" && g.Meta.Weights != "" && weights != g.Meta.Weights; {
	case named && other:
		return nil, errors.Join(fmt.Errorf(
			"the gallery %s was made by %s before it was trained anew: embed again, or name a copy of the old one with --checkpoint", g.Path, path), t.Close())
	case !named && g.Meta.Model != "" && step != g.Meta.Step:
		console.Lines(o.Log).Say("note: the gallery was made at step %d, this checkpoint is of step %d: unless they are of one model, scores mean nothing", g.Meta.Step, step)
	case !named && other:
		console.Lines(o.Log).Say("note: the gallery was made by other parameters than those of this checkpoint: unless they are of one model, scores mean nothing")
	}
	return q, nil
}

// NewQueries is OpenQueries of a model that is open, which it owns unless there is an error.
func NewQueries(g *gallery.Gallery, t *run.Trained) (*Queries, error) {
	q := &Queries{Trained: t}
	return q, q.open(g)
}

// open loads the model and compares it with the gallery.
func (q *Queries) open(g *gallery.Gallery) (err error) {
	if err := q.Load(); err != nil {
		return err
	}
	dims := 0
	if g.Meta.LeadingOf > 0 {
		dims = g.Dim()
	}
	if q.rows, err = newRowEncoder(q.Trained, dims); err != nil {
		return err
	}
	if q.Config.Has(section.Stored) {
		q.widths = map[string]int{gallery.Image: q.Model.Image().Width(), gallery.Text: q.Model.Text().Width()}
	}
	var said Result
	q.rows.describe(&said)
	switch meta := g.Meta; {
	case said.Dim != g.Dim():
		return fmt.Errorf("%s has features of %d channels, the gallery %s of %d: name the checkpoint that made it",
			q.Path(), said.Dim, g.Path, g.Dim())
	case said.LeadingOf != meta.LeadingOf:
		return fmt.Errorf("%s has features of %d channels, the gallery %s the leading ones of %d: name the checkpoint that made it",
			q.Path(), said.LeadingOf, g.Path, meta.LeadingOf)
	case meta.Score != "" && said.Score != meta.Score:
		return fmt.Errorf("%s compares pairs by %s, the gallery %s was made for %s: name that score with --set eval.score", q.Path(), said.Score, g.Path, meta.Score)
	}
	return nil
}

// Reads says whether a side of the model reads words or pixels, which a query can be.
func (q *Queries) Reads(side string) error {
	cfg := q.Config
	switch {
	case cfg.Has(section.Stored):
		return fmt.Errorf("model.system %q reads stored features: query by a row, a vector or features of its encoders",
			cfg.Model.System)
	case side == gallery.Image && cfg.Has(section.Regions):
		return noPictures(cfg)
	case side == gallery.Image && cfg.Has(section.Sentences):
		return fmt.Errorf("model.system %q has no images: query by a text, a row or a vector", cfg.Model.System)
	case side == gallery.Text && cfg.Has(section.ImagesAlone):
		return fmt.Errorf("model.system %q has no texts: query by an image, a row or a vector", cfg.Model.System)
	}
	return nil
}

// Texts encodes texts to features (n, C). It fails for one of which nothing is left as a caption.
func (q *Queries) Texts(ctx context.Context, texts []string) ([]float32, error) {
	if err := q.Reads(gallery.Text); err != nil {
		return nil, err
	}
	x, _, err := q.encode(ctx, gallery.Text, run.Texts(q.Config, texts, q.TextColumns()))
	return x, err
}

// Tokens returns how many tokens the model reads of a text as a caption, an error where nothing is left of it.
func (q *Queries) Tokens(text string) (int, error) {
	caption, err := q.Caption(text)
	if err != nil {
		return 0, err
	}
	return len(q.Tokenizer.Encode(caption, q.Config.Data.Tokens)), nil
}

// Images encodes images to features (n, C), as they are compared with images, and to rows (n, C),
// as they are compared with texts.
func (q *Queries) Images(ctx context.Context, images []*transform.Image) (features, rows []float32, err error) {
	if err := q.Reads(gallery.Image); err != nil {
		return nil, nil, err
	}
	rows, features, err = q.encode(ctx, gallery.Image, listedImages{len(images), q.Config.Model.Image.Size,
		q.Config.ImageInput(), func(i int) (*transform.Image, error) { return images[i], nil }})
	if features == nil {
		features = rows
	}
	return features, rows, err
}

// Width returns the numbers of a row of stored features of a side, 0 where the model reads none. It may be
// called from several goroutines.
func (q *Queries) Width(side string) int { return q.widths[side] }

// Features maps rows of stored features of a side (n, D), D its Width, to features (n, C), as they are
// compared with their own side, and to rows (n, C), as they are compared with the other one.
func (q *Queries) Features(ctx context.Context, side string, x []float32) (features, rows []float32, err error) {
	width := q.Width(side)
	switch {
	case width == 0:
		return nil, nil, fmt.Errorf("model.system %q reads images and texts: query by one of these",
			q.Config.Model.System)
	case len(x) == 0 || len(x)%width != 0:
		return nil, nil, fmt.Errorf("run: %d numbers are not rows of %d", len(x), width)
	}
	rows, features, err = q.encode(ctx, side, listedRows{x, width, featuresColumn(side)})
	if features == nil {
		features = rows
	}
	return features, rows, err
}

// Rows is Features of the rows of a file, at most most.
func (q *Queries) Rows(ctx context.Context, side, path string, most int) (features, rows []float32, err error) {
	if q.Width(side) == 0 {
		return q.Features(ctx, side, nil)
	}
	in, err := openRows(Inputs{Rows: path, Side: side}, q.Config.Data.CacheDir)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	if err := in.fits(q.Model); err != nil {
		return nil, nil, err
	}
	n, width := in.m.Rows(), in.m.Width()
	if n > most {
		return nil, nil, fmt.Errorf("%s has %d rows: at most %d are searched for at once", path, n, most)
	}
	x := make([]float32, n*width)
	for i := range n {
		if err := in.m.Row(i, x[i*width:(i+1)*width]); err != nil {
			return nil, nil, err
		}
	}
	return q.Features(ctx, side, x)
}

// queriesAtOnce bounds the rows that are encoded at a time.
const queriesAtOnce = 32

// encode encodes all rows.
func (q *Queries) encode(ctx context.Context, side string, g data.Gallery) (rows, features []float32, err error) {
	e := tasks.Encoding{BatchSize: queriesAtOnce, Workers: 2}
	err = q.rows.run(ctx, e, side, g, "", func(_ int, r, f []float32) error {
		rows, features = append(rows, r...), append(features, f...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return rows, features, nil
}
