package embed

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
)

// Encoder encodes texts and images by a model, for any number of goroutines, one after the other.
type Encoder struct {
	t    *run.Trained
	rows rowEncoder
	lock sync.Mutex
}

// NewEncoder returns the encoder of an opened model, which it loads. The model stays the caller's.
func NewEncoder(t *run.Trained) (*Encoder, error) {
	if t.Config.Has(section.Stored) {
		return nil, console.Argument("model.system %q reads stored features, and no texts and images",
			t.Config.Model.System)
	}
	if err := t.Load(); err != nil {
		return nil, err
	}
	rows, err := newRowEncoder(t, 0)
	return &Encoder{t: t, rows: rows}, err
}

// Dim returns C, the numbers of a row.
func (e *Encoder) Dim() int { return e.rows.dim }

// Texts encodes texts as captions are cleaned, with the prompt of the configuration: rows (n, C) in new memory. Texts
// of alike lengths are encoded together.
func (e *Encoder) Texts(ctx context.Context, texts []string) ([]float32, error) {
	if e.t.Config.Has(section.ImagesAlone) {
		return nil, console.Argument("model.system %q has no texts: encode images", e.t.Config.Model.System)
	}
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(texts[i]), len(texts[j])) })
	sorted := make([]string, len(texts))
	for k, i := range order {
		sorted[k] = texts[i]
	}
	return e.encode(ctx, gallery.Text, run.BlankTexts(e.t.Config, sorted, e.t.TextColumns()), order)
}

// Images encodes n images that load decodes, called from several goroutines: rows (n, C) in new memory, to be compared
// with each other.
func (e *Encoder) Images(ctx context.Context, n int, load func(i int) (*transform.Image, error)) ([]float32, error) {
	if err := e.SeesImages(); err != nil {
		return nil, err
	}
	return e.encode(ctx, gallery.Image, e.listed(n, load), nil)
}

// SeesImages says why the model encodes no images, nil where it does.
func (e *Encoder) SeesImages() error {
	cfg := e.t.Config
	if cfg.Has(section.Sentences) {
		return console.Argument("model.system %q has no images: encode texts", cfg.Model.System)
	}
	return noPictures(cfg)
}

func (e *Encoder) listed(n int, load func(i int) (*transform.Image, error)) listedImages {
	return listedImages{n, e.t.Config.Model.Image.Size, e.t.Config.ImageInput(), load}
}

// Meta says of what model rows are, as a gallery of them does.
func (e *Encoder) Meta() gallery.Meta {
	var done Result
	e.rows.describe(&done)
	return metaOf(e.t, done)
}

// Folds says whether images are stored in two forms, see Rows.
func (e *Encoder) Folds() bool { return e.rows.folds() }

// Rows encodes n images that load decodes, called from several goroutines, to rows as a gallery stores them. take gets
// those of the next k images: rows (k, C), and where the score changes images before it compares them, own (k, C), the
// images as they are compared with each other, else nil. What load returns with ErrLeftOut has rows without a meaning.
// progress is told how much is done and may be nil.
func (e *Encoder) Rows(ctx context.Context, n int, load func(i int) (*transform.Image, error),
	progress func(phase string, done, total int), take func(k int, rows, own []float32) error) error {
	if err := e.SeesImages(); err != nil {
		return err
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	g := &leaving{listedImages: e.listed(n, load)}
	return e.rows.run(ctx, encodingOf(e.t, progress), gallery.Image, g, "encoding images", take)
}

// ErrLeftOut is wrapped by what Encoder.Rows is to leave out.
var ErrLeftOut = errors.New("left out")

// leaving is images some of which are left out.
type leaving struct{ listedImages }

func (g *leaving) Fill(i int, row batch.Row) error {
	err := g.listedImages.Fill(i, row)
	if errors.Is(err, ErrLeftOut) {
		clear(row.Floats(batch.Images))
		return nil
	}
	return err
}

// encode encodes the rows of a gallery. Row k goes to place order[k]; nil: to place k.
func (e *Encoder) encode(ctx context.Context, side string, g data.Gallery, order []int) ([]float32, error) {
	out, at := make([]float32, g.Len()*e.rows.dim), 0
	if g.Len() == 0 {
		return out, ctx.Err()
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	how := tasks.Encoding{BatchSize: e.t.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0)}
	err := e.rows.run(ctx, how, side, g, "encoding", func(n int, rows, features []float32) error {
		if features == nil {
			features = rows
		}
		for i := range n {
			to := at + i
			if order != nil {
				to = order[to]
			}
			copy(out[to*e.rows.dim:(to+1)*e.rows.dim], features[i*e.rows.dim:])
		}
		at += n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
