package serve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/run/setup"
)

// OpenOptions say how a gallery is opened to be served.
type OpenOptions struct {
	Checkpoint string          // that encodes queries; empty: the one that the gallery names
	Texts      TextServer      // that encodes texts instead of a checkpoint
	NoModel    bool            // queries are rows and vectors, and no checkpoint is opened
	Run        run.OpenOptions // of the checkpoint
	Side       string          // whose rows are searched; empty: images where there are any
	MaxPixels  int             // of an image that a thumbnail is made of; 0: images.DefaultMaxPixels
	Index      gallery.IndexOptions
	Writable   bool // the gallery is one that Source.Writer changes
	// Roots are folders that thumbnails of embedded files may be read from beside that of the gallery's images.
	Roots []string
}

// Open opens the gallery at path, the model that encodes queries for it, and the index where it is
// large, which may have to be built. It fails where the gallery is damaged.
func Open(ctx context.Context, path string, o OpenOptions) (*Source, error) {
	m := &opened{o: o}
	g, err := m.open(path)
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	s, err := m.source(ctx, g, m.engine)
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return s, nil
}

// opened is what the sources of a gallery share: those of one that is changed follow each other.
type opened struct {
	o      OpenOptions
	writer *gallery.Writer
	model  *embed.Queries // nil: there is none
	engine *compute.Engine

	users atomic.Int32
}

// open opens all but a source.
func (m *opened) open(path string) (g *gallery.Gallery, err error) {
	if m.o.Writable {
		if m.writer, err = gallery.OpenWriter(path, console.Lines(m.o.Run.Log).Say); err == nil {
			g = m.writer.Gallery()
		}
	} else {
		g, err = gallery.Open(path)
	}
	if err != nil {
		return nil, err
	}
	if !m.o.NoModel && m.o.Texts.URL == "" && (m.o.Checkpoint != "" || g.Meta.Model != "") {
		if m.model, err = embed.OpenQueries(g, m.o.Checkpoint, m.o.Run); err != nil {
			return nil, errors.Join(fmt.Errorf("%w\n(--no-model serves rows and vectors without one)", err), g.Close())
		}
		m.engine = m.model.Engine
	} else if m.engine, err = setup.Engine(config.Default()); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// close gives what is shared back.
func (m *opened) close() (err error) {
	switch {
	case m.model != nil:
		err = m.model.Close()
	case m.engine != nil:
		m.engine.Close()
	}
	if m.writer != nil {
		err = errors.Join(err, m.writer.Close())
	}
	return err
}

// source makes a gallery a source, which owns it; engine builds its index. An error closes it.
func (m *opened) source(ctx context.Context, g *gallery.Gallery, engine *compute.Engine) (s *Source, err error) {
	s = &Source{Gallery: g, Side: m.o.Side, Engine: m.engine, Close: g.Close, Writer: m.writer}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Side == "" {
		s.Side = g.Sides()[0]
	}
	if m.model != nil {
		s.Encoder = m.model
	} else if m.o.Texts.URL != "" {
		if s.Encoder, err = openRemote(ctx, m.o.Texts, g); err != nil {
			return s, err
		}
	}
	index := m.o.Index
	for _, from := range []string{gallery.Text, gallery.Image} {
		v, err := g.View(s.Side, from)
		if err != nil {
			return s, err
		}
		if err := v.UseIndex(ctx, engine, index); err != nil {
			return s, err
		}
		if codes := v.Codes(); codes != "" {
			m.o.Index.Codes = codes // the next generation of the files keeps them
		}
	}
	if err := s.OpenPictures(m.model, m.o); err != nil {
		return s, err
	}
	if err := g.Wait(ctx); err != nil { // a damaged gallery is not served
		return s, err
	}
	closed := s.Close
	m.users.Add(1)
	s.Close = func() error {
		err := closed()
		if m.users.Add(-1) == 0 {
			err = errors.Join(err, m.close())
		}
		return err
	}
	if m.writer != nil {
		s.Next = m.next
	}
	return s, nil
}

// next is Source.Next. The engine of searches is in use: the index is built on another one.
func (m *opened) next(ctx context.Context, g *gallery.Gallery) (*Source, error) {
	e, err := setup.Engine(config.Default())
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	defer e.Close()
	return m.source(ctx, g, e)
}

// OpenPictures sets Picture where the rows have images that can be had, of a split by its model, and Close to give back
// what that takes. Of o it reads MaxPixels, Roots and Run.Log.
func (s *Source) OpenPictures(model *embed.Queries, o OpenOptions) error {
	g := s.Gallery
	if first, err := g.Item(s.Side, 0); s.Side != gallery.Image || err != nil || first.Name == "" {
		return err
	}
	switch {
	case g.Meta.Split == "" && g.Root != "": // files that were embedded
		from, err := openRoots(append([]string{g.Root}, o.Roots...))
		if err != nil {
			return err
		}
		closed := s.Close
		s.Close = func() error { return errors.Join(closed(), from.Close()) }
		s.Picture = func(row int) (*transform.Image, error) {
			path, err := g.ImageFile(row)
			if err != nil {
				return nil, err
			}
			return from.picture(path, o.MaxPixels)
		}
		return nil
	case g.Meta.Split == "" || model == nil || model.Reads(gallery.Image) != nil:
		return nil
	}
	of, err := model.Pictures(g.Meta.Split)
	if err != nil { // the data may be elsewhere
		if o.Run.Log != nil {
			fmt.Fprintf(o.Run.Log, "note: there are no thumbnails: %v\n", err)
		}
		return nil
	}
	s.Picture = func(row int) (*transform.Image, error) {
		item, err := g.Item(gallery.Image, row)
		if err != nil {
			return nil, err
		}
		return of(row, item.Name)
	}
	return nil
}
