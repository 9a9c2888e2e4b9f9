package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/run/setup"
)

// OpenOptions say how a gallery is opened to be served.
type OpenOptions struct {
	Checkpoint string          // that encodes queries; empty: the one that the gallery names
	NoModel    bool            // queries are rows and vectors, and no checkpoint is opened
	Run        run.OpenOptions // of the checkpoint
	Side       string          // whose rows are searched; empty: images where there are any
	MaxPixels  int             // of an image that a thumbnail is made of; 0: images.DefaultMaxPixels
	Index      gallery.IndexOptions
	// Roots are folders that thumbnails of embedded files may be read from beside that of the gallery's images.
	Roots []string
}

// Open opens the gallery at path, the model that encodes queries for it, and the index where it is
// large, which may have to be built. It fails where the gallery is damaged.
func Open(ctx context.Context, path string, o OpenOptions) (s *Source, err error) {
	g, err := gallery.Open(path)
	if err != nil {
		return nil, err
	}
	s = &Source{Gallery: g, Side: o.Side, Close: g.Close}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Side == "" {
		s.Side = g.Sides()[0]
	}
	var model *embed.Queries
	if !o.NoModel && (o.Checkpoint != "" || g.Meta.Model != "") {
		if model, err = embed.OpenQueries(g, o.Checkpoint, o.Run); err != nil {
			return s, fmt.Errorf("%w\n(--no-model serves rows and vectors without one)", err)
		}
		s.Engine, s.Encoder = model.Engine, model
		s.Close = func() error { return errors.Join(g.Close(), model.Close()) }
	} else {
		if s.Engine, err = setup.Engine(config.Default()); err != nil {
			return s, err
		}
		s.Close = func() error { s.Engine.Close(); return g.Close() }
	}
	for _, from := range []string{gallery.Text, gallery.Image} {
		v, err := g.View(s.Side, from)
		if err != nil {
			return s, err
		}
		if err := v.UseIndex(ctx, s.Engine, o.Index); err != nil {
			return s, err
		}
	}
	if s.Picture, err = pictures(s, model, o); err != nil {
		return s, err
	}
	return s, g.Wait(ctx) // a damaged gallery is not served
}

// pictures returns what finds the images of rows, nil where there are none.
func pictures(s *Source, model *embed.Queries, o OpenOptions) (func(row int) (*transform.Image, error), error) {
	g := s.Gallery
	if first, err := g.Item(s.Side, 0); s.Side != gallery.Image || err != nil || first.Name == "" {
		return nil, err
	}
	switch {
	case g.Meta.Split == "" && g.Root != "": // files that were embedded
		from, err := openRoots(append([]string{g.Root}, o.Roots...))
		if err != nil {
			return nil, err
		}
		closed := s.Close
		s.Close = func() error { return errors.Join(closed(), from.Close()) }
		return func(row int) (*transform.Image, error) {
			path, err := g.ImageFile(row)
			if err != nil {
				return nil, err
			}
			return from.picture(path, o.MaxPixels)
		}, nil
	case g.Meta.Split == "" || model == nil || model.Reads(gallery.Image) != nil:
		return nil, nil
	}
	of, err := model.Pictures(g.Meta.Split)
	if err != nil { // the data may be elsewhere
		if o.Run.Log != nil {
			fmt.Fprintf(o.Run.Log, "note: there are no thumbnails: %v\n", err)
		}
		return nil, nil
	}
	return func(row int) (*transform.Image, error) {
		item, err := g.Item(gallery.Image, row)
		if err != nil {
			return nil, err
		}
		return of(row, item.Name)
	}, nil
}
