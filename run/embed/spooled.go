package embed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
)

// imageFeatures is the tensor of images as the head gives them, where the score changes them before
// it compares.
const imageFeatures = "image_features"

// rowEncoder encodes rows as they are stored: images folded with what the score does to them.
type rowEncoder struct {
	t     *run.Trained
	dim   int           // C
	score scoring.Score // has no terms for a system of images alone without identities
	whole int           // channels of features, of which rows are the leading C; 0: rows are whole
}

// newRowEncoder asks a loaded model for its space and score. Rows are the leading dims channels of features; 0: all.
func newRowEncoder(t *run.Trained, dims int) (r rowEncoder, err error) {
	r.t = t
	switch {
	case r.classes():
		r.dim = t.Model.Image().Width()
	case t.Config.Has(section.ImagesAlone) && !t.Config.Has(section.Identities):
		r.dim = t.Model.Image().Dim()
		r.score.Space.Dim = r.dim
	default:
		r.dim = t.Model.Dim()
		if r.score, err = t.Model.PairScore(); err != nil {
			return r, err
		}
	}
	if dims == 0 {
		return r, nil
	}
	return r, r.truncate(dims)
}

// truncate makes rows the leading dims channels of features, see objectives.Matryoshka.
func (r *rowEncoder) truncate(dims int) (err error) {
	cfg := r.t.Config
	learned := slices.ContainsFunc(r.score.Terms, func(t scoring.Term) bool { return t.Kind == scoring.GSSF })
	switch {
	case r.classes():
		return console.Argument("--dims: model.system %q is embedded by class tokens, whose leading channels are not features: leave it out", cfg.Model.System)
	case learned:
		return console.Argument("--dims: the score %s has a learned metric of all channels: leave it out, or add --set eval.score=cosine", r.score)
	case dims < 1 || dims >= r.dim:
		return console.Argument("--dims must be at least 1 and below the %d channels of the model (got %d)", r.dim, dims)
	}
	r.whole = r.dim
	if r.score.Space, err = r.score.Space.Leading(dims); err != nil {
		return console.Argument("--dims (got %d) %w", dims, err)
	}
	if r.dim = dims; !slices.Contains(cfg.Objective.Matryoshka.Dims, dims) {
		r.t.Say("note: objective.matryoshka.dims does not name %d leading channels: the model may not have been trained to use them alone, see trainer eval with --set objective.matryoshka.dims=[%d]", dims, dims)
	}
	return nil
}

// classes says whether images are class tokens before any head, of systems whose head is for training alone.
func (r rowEncoder) classes() bool {
	c := r.t.Config
	return c.Has(section.ImagesAlone) && !c.Has(section.OneEncoder) && !c.Has(section.Identities)
}

// folds says whether images are changed by the score, so that both forms are stored.
func (r rowEncoder) folds() bool {
	return len(r.score.Terms) > 0 && r.score.Folds() && !r.score.Identity()
}

// describe completes what is said of the rows.
func (r rowEncoder) describe(done *Result) {
	done.Dim, done.LeadingOf = r.dim, r.whole
	if len(r.score.Terms) > 0 {
		done.Space, done.Score, done.Product = r.t.Config.Model.Head.Topology, r.score.String(), r.score.Folds()
		done.Alike = r.t.Config.Has(section.Identities)
		if r.t.Config.Has(section.Fitted) {
			done.Space = "sphere" // of any map
		}
	}
}

// run encodes the rows of a gallery of a side and hands them to take, some at a time: features
// (k, C) and, of images that are folded, both forms.
func (r rowEncoder) run(ctx context.Context, e tasks.Encoding, side string, g data.Gallery, phase string,
	take func(k int, rows, features []float32) error) error {
	m := r.t.Model
	if r.classes() {
		return e.RunClasses(ctx, m.Image(), g, phase, func(k int, x []float32) error { return take(k, x, nil) })
	}
	of := m.Image()
	if side == gallery.Text {
		of = m.Text()
	}
	var folded, leading []float32
	return e.Run(ctx, of, g, phase, func(x tasks.Encoded) error {
		if r.whole > 0 {
			leading = r.score.Space.Truncate(leading[:0], x.Features, r.whole)
			x.Features = leading
		}
		if side == gallery.Text || !r.folds() {
			return take(x.Rows, x.Features, nil)
		}
		folded = append(folded[:0], x.Features...)
		if err := r.score.FoldImages(folded, x.Features, x.Rows); err != nil {
			return err
		}
		return take(x.Rows, folded, x.Features)
	})
}

// spooled is the rows of a side on their way to a file.
type spooled struct {
	side           string
	rows, features *safetensors.Spool // features: nil where they are the rows
}

// spool encodes a gallery. The files of the spools lie in the folder dir. Of a batch whose rows
// begin at row i of the gallery, keep chooses those that are kept; nil: all.
func (r rowEncoder) spool(ctx context.Context, e tasks.Encoding, side string, g data.Gallery, phase, dir string,
	keep func(i int) bool) (s *spooled, err error) {
	s = &spooled{side: side}
	if r.t.Group.Rank() > 0 { // which encodes its share for rank 0
		return s, r.run(ctx, e, side, g, phase, func(int, []float32, []float32) error { return nil })
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.rows, err = safetensors.NewSpool(dir); err != nil {
		return s, err
	}
	if side == gallery.Image && r.folds() {
		if s.features, err = safetensors.NewSpool(dir); err != nil {
			return s, err
		}
	}
	at := 0
	return s, r.run(ctx, e, side, g, phase, func(k int, rows, features []float32) error {
		width := len(rows) / k
		for i := range k {
			if keep != nil && !keep(at+i) {
				continue
			}
			if c := slices.IndexFunc(rows[i*width:(i+1)*width], notFinite); c >= 0 { // which no search takes
				return &eval.NonFiniteError{What: fmt.Sprintf(
					"%s: the features of row %d are not finite (%v in column %d)", phase, at+i, rows[i*width+c], c),
					Cure: "the model has diverged, name another checkpoint"}
			}
			if err := s.rows.Append(rows[i*width : (i+1)*width]); err != nil {
				return err
			}
			if s.features != nil {
				if err := s.features.Append(features[i*width : (i+1)*width]); err != nil {
					return err
				}
			}
		}
		at += k
		return nil
	})
}

func notFinite(v float32) bool { return v-v != 0 }

// tensors are the rows of dim channels as tensors to write.
func (s *spooled) tensors(dim int) []safetensors.Tensor {
	out := []safetensors.Tensor{{Name: s.side, Shape: []int{s.rows.Len() / dim, dim}, Data: s.rows}}
	if s.features != nil {
		out = append(out, safetensors.Tensor{Name: imageFeatures, Shape: []int{s.features.Len() / dim, dim},
			Data: s.features})
	}
	return out
}

// Close drops the rows.
func (s *spooled) Close() (err error) {
	for _, x := range []*safetensors.Spool{s.rows, s.features} {
		if x != nil {
			err = errors.Join(err, x.Close())
		}
	}
	return err
}
