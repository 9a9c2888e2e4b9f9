package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// FileKinds are the endings of a file of features.
var FileKinds = []string{".npy", ".safetensors", ".parquet"}

// IsFeatureFile says whether out names a file of features, and not a folder.
func IsFeatureFile(out string) bool { return slices.Contains(FileKinds, filepath.Ext(out)) }

// FeaturesOf is what is encoded to a file of features: inputs, or a split of the data and one of its sides.
type FeaturesOf struct {
	Inputs
	Split string // empty: Inputs
}

// Features encodes inputs to one file of features, (N, C) of float32, by the ending of its name: a matrix (.npy), the
// tensor features (.safetensors), or a table of the columns name and features (.parquet). Beside the first two lies a
// file with a line for each row that names it, whose name ends in .jsonl. progress is told how much is done and may be
// nil. Memory holds the features of a batch, and of a table all.
func Features(ctx context.Context, t *run.Trained, of FeaturesOf, out string,
	progress func(phase string, done, total int)) (done Result, err error) {
	if !IsFeatureFile(out) {
		return done, console.Argument("%s: a file of features ends in .npy, .safetensors or .parquet", out)
	}
	next, side, end, err := of.open(ctx, t, progress)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := t.Load(); err != nil {
		return done, err
	}
	rows, err := newRowEncoder(t, of.Dims)
	if err != nil {
		return done, err
	}
	dir := filepath.Dir(out)
	spool, err := safetensors.NewSpool(dir)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	done = Result{Path: out, Split: of.Split, Dim: rows.dim, LeadingOf: rows.whole}
	var names []rowName
	n := 0
	for {
		p, err := next()
		if err != nil {
			return done, err
		}
		if p == nil {
			break
		}
		err = rows.run(ctx, encodingOf(t, progress), side, p.gallery, "encoding", func(_ int, x, own []float32) error {
			if own != nil {
				x = own
			}
			if i := slices.IndexFunc(x, notFinite); i >= 0 {
				return fmt.Errorf("row %d has features that are not finite: name another model", n+i/rows.dim)
			}
			return spool.Append(x)
		})
		if err != nil {
			return done, err
		}
		for i := range p.gallery.Len() {
			names = append(names, rowName{p.name(i), p.line(i, n+i)})
		}
		n += p.gallery.Len()
	}
	if n == 0 {
		return done, fmt.Errorf("there is nothing to encode: give texts or images")
	}
	if done.Images = n; side == gallery.Text {
		done.Images, done.Texts = 0, n
	}
	return done, writeFeatures(out, spool, n, rows.dim, names)
}

// open returns what hands out the inputs some at a time, nil at their end, and their side.
func (of FeaturesOf) open(ctx context.Context, t *run.Trained, progress func(phase string, done, total int)) (
	next func() (*part, error), side string, end func() error, err error) {
	none := func() error { return nil }
	if of.Split == "" {
		if err := of.setDefaults(t.Config); err != nil {
			return nil, "", none, err
		}
		if err := t.Load(); err != nil { // for its tokenizer
			return nil, "", none, err
		}
		in, err := openInputs(t.Config, of.Inputs, t.TextColumns)
		if err != nil {
			return nil, "", none, err
		}
		if side = gallery.Image; of.Texts != "" || of.Rows != "" && of.Side == gallery.Text {
			side = gallery.Text
		}
		return func() (*part, error) { return in.next(of.Shard) }, side, in.Close, nil
	}
	side = of.Side
	switch {
	case side == "" && t.Config.Has(section.Sentences):
		side = gallery.Text
	case side == "":
		side = gallery.Image
	case side == gallery.Text && t.Config.Has(section.ImagesAlone),
		side == gallery.Image && t.Config.Has(section.Sentences):
		return nil, "", none, console.Argument("--side %s: model.system %q does not read these", side, t.Config.Model.System)
	}
	set, err := t.Unranked(ctx, of.Split, progress)
	if err != nil {
		return nil, "", none, err
	}
	if err := t.Load(); err != nil {
		return nil, "", none, err
	}
	g := set.Images()
	name := func(i int) string {
		if e, ok := set.Galleries.(namedImages); ok {
			return e.ImageName(i)
		}
		return fmt.Sprintf("row %d", i)
	}
	if side == gallery.Text {
		if g, err = set.Texts(t.TextColumns()); err != nil {
			return nil, "", none, err
		}
		name = set.Eval.Text
	}
	one := &part{gallery: g}
	if one.named(name); side == gallery.Text {
		one.line = func(i, row int) any { return map[string]any{"row": row, "caption": name(i)} }
	}
	return func() (p *part, err error) {
		p, one = one, nil
		return p, nil
	}, side, none, nil
}

// rowName is the name of a row, and the line about it in a file of names.
type rowName struct {
	name string
	line any
}

// namedRow is a row of a table of features.
type namedRow struct {
	Name     string    `parquet:"name"`
	Features []float32 `parquet:"features,list"`
}

// writeFeatures writes the n rows of a spool, of width numbers each.
func writeFeatures(out string, spool *safetensors.Spool, n, width int, names []rowName) error {
	each := func(take func(i int, row []float32) error) error {
		row := make([]float32, width)
		for i := range n {
			if err := spool.ReadAt(row, i*width); err != nil {
				return err
			}
			if err := take(i, row); err != nil {
				return err
			}
		}
		return nil
	}
	switch filepath.Ext(out) {
	case ".parquet":
		return files.ReplaceFrom(out, func(w io.Writer) error {
			table := parquet.NewGenericWriter[namedRow](w)
			err := each(func(i int, row []float32) error {
				_, err := table.Write([]namedRow{{names[i].name, row}})
				return err
			})
			return errors.Join(err, table.Close())
		})
	case ".npy":
		if err := features.Write(out, func(emit func([]float32) error) error {
			return each(func(_ int, row []float32) error { return emit(row) })
		}); err != nil {
			return err
		}
	default:
		tensor := safetensors.Tensor{Name: "features", Shape: []int{n, width}, Data: spool}
		if err := files.ReplaceFrom(out, func(w io.Writer) error {
			return safetensors.WriteSummed(w, []safetensors.Tensor{tensor}, nil)
		}); err != nil {
			return err
		}
	}
	return files.ReplaceFrom(gallery.NamesOf(out), func(w io.Writer) error {
		return gallery.WriteLines(w, n, func(i int) any { return names[i].line })
	})
}
