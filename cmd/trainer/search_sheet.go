package main

import (
	"fmt"
	"image"
	"io"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/data/preview"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/serve"
)

// sheetColumns is how many hits stand in a row of a sheet.
const sheetColumns = 5

// mostDrawn is the most hits of a sheet.
const mostDrawn = 500

// draw draws the images of what was found to --out, those of each query from a new row on.
func (s *lookup) draw(found found, c *cobra.Command) error {
	encode, err := encoderOf(s.flags.out)
	if err != nil {
		return err
	}
	if s.side != gallery.Image {
		return fmt.Errorf("--out draws images, and the rows that were searched are texts: leave out --in text")
	}
	model := s.model
	if model == nil && s.g.Meta.Split != "" { // whose data it knows
		if model, err = embed.OpenQueries(s.g, s.flags.checkpoint, s.open); err != nil {
			return err
		}
		defer model.Close()
	}
	src := &serve.Source{Gallery: s.g, Side: s.side, Close: func() error { return nil }}
	if err := src.OpenPictures(model, serve.OpenOptions{Run: s.open}); err != nil {
		return err
	}
	defer src.Close()
	if src.Picture == nil {
		return fmt.Errorf("--out: the images of %s cannot be had: it holds features alone, or its images are elsewhere", s.g.Path)
	}
	var pictures []image.Image
	var captions []string
	for _, hits := range found.Queries {
		for len(pictures)%sheetColumns != 0 { // the rest of a row stays empty
			pictures, captions = append(pictures, image.Transparent), append(captions, "")
		}
		for _, h := range hits {
			if len(pictures) == mostDrawn {
				break
			}
			under := fmt.Sprintf("%.3f %s", h.Score, words.Shown(h.Name+h.Caption))
			if m, err := src.Picture(h.Row); err != nil {
				pictures, under = append(pictures, nil), under+" (cannot be read)"
			} else {
				pictures = append(pictures, m.NRGBA())
			}
			captions = append(captions, under)
		}
	}
	sheet, err := preview.ContactSheet(pictures, captions, sheetColumns)
	if err != nil {
		return err
	}
	return files.ReplaceFrom(s.flags.out, func(w io.Writer) error { return encode(w, sheet) })
}
