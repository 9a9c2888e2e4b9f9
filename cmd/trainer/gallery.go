package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/embed"
)

func newGalleryCommand() *cobra.Command {
	return groupCommand("gallery", "Put, delete and merge rows of a gallery, and exchange them with other programs",
		`  trainer gallery put gallery items.jsonl
  trainer gallery delete gallery a.jpg b.jpg
  trainer gallery export gallery --to gallery.parquet`,
		newGalleryPutCommand(), newGalleryDeleteCommand(), newGalleryMergeCommand(), newGalleryExportCommand(),
		newGalleryImportCommand())
}

// changing opens a gallery to change it, has it changed, and closes it.
func changing(c *cobra.Command, path string, quiet bool, change func(w *gallery.Writer) error) error {
	out := outputFlags{quiet: quiet}
	note := out.note(c)
	w, err := gallery.OpenWriter(path, func(format string, args ...any) { fmt.Fprintf(note, format+"\n", args...) })
	if err != nil {
		return err
	}
	err = change(w)
	return errors.Join(err, w.Close(), w.Gallery().Close())
}

// galleryPut are the flags of gallery put.
type galleryPut struct {
	config     configFlags
	quiet      bool
	checkpoint string
}

// putBatch is how many items are encoded and written together.
const putBatch = 256

func newGalleryPutCommand() *cobra.Command {
	var f galleryPut
	c := &cobra.Command{
		Use:   "put GALLERY FILE",
		Short: "Put rows into a gallery",
		Long: `put reads a file of items, a JSON object a line:

  {"id": "a.jpg", "image": "photos/a.jpg"}            an image, by a path from the folder of the file
  {"id": "7", "text": "two dogs", "payload": {...}}   a text, with what else is known of it
  {"id": "x", "vector": [0.1, ...]}                   the features of a row, as the gallery has them

An item takes the place of the row with its id, or is new. Images and texts are encoded by the
checkpoint that the gallery names, or by --checkpoint. What is written stays, whatever happens to
the command then: 256 items at a time are on the disk.`,
		Example: `  trainer gallery put gallery items.jsonl`,
		Args:    twoArguments("GALLERY and FILE: a folder that embed wrote, and a file of items"),
		RunE:    func(c *cobra.Command, args []string) error { return f.execute(c, args[0], args[1]) },
	}
	f.config.add(c)
	overCheckpoint(c)
	f.config.addPrompt(c)
	c.Flags().BoolVar(&f.quiet, "quiet", false, "no messages")
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "",
		"run or step `folder` that encodes items (default: the one that the gallery names)")
	return c
}

// twoArguments asks for two arguments.
func twoArguments(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("%s needs %s (got %d arguments)", c.CommandPath(), what, len(args))
		}
		return nil
	}
}

// galleryItem is a line of the file.
type galleryItem struct {
	ID      string             `json:"id"`
	Text    string             `json:"text"`
	Image   string             `json:"image"`
	Vector  strictjson.Numbers `json:"vector"`
	Payload json.RawMessage    `json:"payload"`
}

func (f *galleryPut) execute(c *cobra.Command, path, items string) error {
	return changing(c, path, f.quiet, func(w *gallery.Writer) error {
		in, _, err := files.Open(items, 0)
		if err != nil {
			return err
		}
		defer in.Close()
		p := &putting{w: w, folder: filepath.Dir(items), open: func() (*embed.Queries, error) {
			return embed.OpenQueries(w.Gallery(), f.checkpoint, opening(c, &f.config, f.quiet))
		}}
		defer func() {
			if p.model != nil {
				p.model.Close()
			}
		}()
		r := bufio.NewReader(in)
		for line := 1; err == nil; line++ {
			var b []byte
			if b, err = r.ReadBytes('\n'); len(bytes.TrimSpace(b)) > 0 {
				if bad := p.add(c.Context(), b); bad != nil {
					return fmt.Errorf("%s: line %d: %w", items, line, bad)
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		if err := p.flush(); err != nil {
			return fmt.Errorf("%s: %w", items, err)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s put, %d of them in the place of others: %s has %s\n", words.Count(p.put, "row"),
			p.replaced, path, words.Count(w.Gallery().Alive(w.Gallery().Sides()[0]), "row"))
		return nil
	})
}

// putting is items on their way to a gallery.
type putting struct {
	w      *gallery.Writer
	folder string
	open   func() (*embed.Queries, error)
	model  *embed.Queries // nil: nothing was encoded yet
	rows   []gallery.Put

	put, replaced int
}

// add encodes an item.
func (p *putting) add(ctx context.Context, line []byte) error {
	var in galleryItem
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := errors.Join(strictjson.Check(line), d.Decode(&in)); err != nil {
		return err
	}
	row, named := gallery.Put{ID: in.ID, Caption: in.Text, Payload: in.Payload}, 0
	for _, there := range []bool{in.Text != "", in.Image != "", in.Vector != nil} {
		if there {
			named++
		}
	}
	if named != 1 {
		return fmt.Errorf("an item has one of text, image and vector (got %d of them)", named)
	}
	var err error
	if in.Vector == nil && p.model == nil {
		if p.model, err = p.open(); err != nil {
			return err
		}
	}
	switch {
	case in.Vector != nil:
		x := make([]float32, len(in.Vector))
		for i, v := range in.Vector {
			x[i] = float32(v)
		}
		if row.Features, err = p.w.Gallery().Channels(x); err != nil {
			err = fmt.Errorf("vector %w", err)
		}
	case in.Text != "":
		row.Features, err = p.model.Texts(ctx, []string{in.Text})
	case in.Image != "":
		path := in.Image
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.folder, path)
		}
		var m *transform.Image
		if m, err = images.DecodeFile(path, p.model.Config.Data.MaxPixels); err == nil {
			row.Own, row.Features, err = p.model.Images(ctx, []*transform.Image{m})
		}
	}
	if err != nil {
		return err
	}
	if p.rows = append(p.rows, row); len(p.rows) == putBatch {
		return p.flush()
	}
	return nil
}

// flush writes what was encoded.
func (p *putting) flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	n, err := p.w.Put(p.rows)
	if err != nil {
		return err
	}
	p.put, p.replaced, p.rows = p.put+len(p.rows), p.replaced+n, nil
	return nil
}

func newGalleryDeleteCommand() *cobra.Command {
	var filter string
	var quiet bool
	c := &cobra.Command{
		Use:   "delete GALLERY [ID...]",
		Short: "Delete rows of a gallery by their ids or by a filter",
		Long: `delete deletes the rows that have the ids, or those that --filter chooses (trainer search --help
says how one is written).`,
		Example: `  trainer gallery delete gallery a.jpg b.jpg
  trainer gallery delete gallery --filter '{"name": {"contains": "2019/"}}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (filter == "") {
				return usageError{errors.New("gallery delete needs ids or --filter: which rows to delete")}
			}
			var chosen *gallery.Filter
			if filter != "" {
				var err error
				if chosen, err = gallery.ParseFilter([]byte(filter)); err != nil {
					return usageError{fmt.Errorf("--%w", err)}
				}
			}
			return changing(c, args[0], quiet, func(w *gallery.Writer) (err error) {
				n := 0
				if chosen != nil {
					n, err = w.DeleteWhere(chosen)
				} else {
					n, err = w.Delete(args[1:])
				}
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s deleted\n", words.Count(n, "row"))
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&filter, "filter", "", "`JSON` of the rows to delete")
	c.Flags().BoolVar(&quiet, "quiet", false, "no messages")
	return c
}

func newGalleryMergeCommand() *cobra.Command {
	var quiet bool
	c := &cobra.Command{
		Use:   "merge GALLERY",
		Short: "Write the rows of a gallery to new files, without those that were deleted",
		Long: `merge writes what was put and deleted into the files of the gallery, which a server that changes it does by
itself. The index is built anew by the next search.`,
		Example: `  trainer gallery merge gallery`,
		Args:    oneGallery,
		RunE: func(c *cobra.Command, args []string) error {
			return changing(c, args[0], quiet, func(w *gallery.Writer) error {
				old := w.Gallery()
				var next *gallery.Gallery
				err := w.Merge(c.Context(), func(g *gallery.Gallery) error { next = g; return nil },
					func(*gallery.Gallery) { next = nil })
				if err != nil && next != nil {
					return errors.Join(err, next.Close())
				}
				if g := w.Gallery(); err == nil && g != old {
					err = old.Close()
				}
				if err == nil {
					fmt.Fprintf(c.OutOrStdout(), "%s has %s\n", args[0],
						words.Count(w.Gallery().Alive(w.Gallery().Sides()[0]), "row"))
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&quiet, "quiet", false, "no messages")
	return c
}
