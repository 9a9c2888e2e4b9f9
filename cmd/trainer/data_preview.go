package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/preview"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
)

func newPreviewCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var split, file string
	var images, columns int
	c := &cobra.Command{
		Use:   "preview",
		Short: "Draw a contact sheet of images with their captions",
		Long: `preview draws a contact sheet of images with their captions, as a PNG or JPEG file.

The train split is shown as training sees it: cropped, flipped, augmented, with one drawn caption.
The second view (data.views = 2) or second picture (data.kind = "nlvr") is drawn beside the first.
Other splits are shown as an evaluation sees them: the whole image resized to model.image.size,
with its first caption; images without a caption and those beyond eval.max_images are omitted.

Boxes of regions (data.kind = "regions") are drawn on the whole pictures. Data without pictures,
such as sentence_pairs, is printed as a table, and no file is written.`,
		Example: `  trainer data preview --config configs/quickstart.toml --out sheet.png
  trainer data preview --config configs/flickr8k.toml --set data.root=/data/flickr8k --split val
  trainer data preview --config my.toml --images 100 --columns 10 --seed 7`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if images < 1 || columns < 1 {
				return usageError{fmt.Errorf("--images and --columns must be > 0 (got %d and %d)", images, columns)}
			}
			if err := checkSplit(split); err != nil {
				return err
			}
			encode, err := encoderOf(file)
			if err != nil {
				return err
			}
			cfg, err := flags.loadToUse(c)
			if err != nil {
				return err
			}
			warn := func(text string) { fmt.Fprintln(out.note(c), text) }
			if cfg.Data.Kind == sentencepairs.Name {
				return sentenceTable(c, cfg, split, images, out.json)
			}
			if table, err := regionTable(c, cfg, split, images, out.json, source.Options{Warn: warn}); table ||
				err != nil {
				return err
			}
			s, err := shown(c, out, func(ctx context.Context, progress func(phase string, done, of int)) (*sheet,
				error) {
				return previewSheet(ctx, cfg, split, images, columns, source.Options{Warn: warn, Progress: progress})
			})
			if err != nil {
				return err
			}
			if err := files.ReplaceFrom(file, func(w io.Writer) error { return encode(w, s.sheet) }); err != nil {
				return err
			}
			for _, b := range s.bad {
				fmt.Fprintf(out.note(c), "left out: %s\n", words.Inline(fmt.Sprint(b)))
			}
			if out.json {
				size := s.sheet.Bounds()
				return printJSON(c.OutOrStdout(), map[string]any{"file": file, "split": split, "images": s.shown,
					"left_out": len(s.bad), "width": size.Dx(), "height": size.Dy()})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s of the %s split\n", file, words.Count(s.shown, "image"), split)
			return nil
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().StringVar(&file, "out", "preview.png", "`file` to write, .png or .jpg")
	c.Flags().StringVar(&split, "split", "train", "train, val or test")
	c.Flags().IntVar(&images, "images", 24, "number of images")
	c.Flags().IntVar(&columns, "columns", 6, "images in a row")
	return c
}

// sheet is a contact sheet and what is on it.
type sheet struct {
	sheet image.Image
	shown int
	bad   []error // reasons of images that could not be shown
}

// previewSheet draws up to n images of a split. Bad samples are left out.
func previewSheet(ctx context.Context, cfg config.Config, split string, n, columns int, o source.Options) (*sheet,
	error) {
	next, err := samples(ctx, cfg, split, &n, o)
	if err != nil {
		return nil, err
	}
	var s sheet
	var images []image.Image
	var captions []string
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		shown, under, err := next(i)
		if files.Exhausted(err) {
			return nil, err
		}
		if err != nil {
			s.bad = append(s.bad, err)
			continue
		}
		s.shown++
		for k, img := range shown {
			images, captions = append(images, img.NRGBA()), append(captions, under[k])
		}
		if len(shown) == 2 {
			columns += columns % 2 // both stay in one row
		}
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("no image of the %s split can be shown: %w", split, cmp.Or(append(s.bad, errEmpty)...))
	}
	s.sheet, err = preview.ContactSheet(images, captions, columns)
	return &s, err
}

// secondView stands under the second view of an image instead of its caption.
const secondView = "(second view)"

// sample gives sample i of a split: its pictures, in training with all of its views, and what stands under each.
type sample func(i int) ([]*transform.Image, []string, error)

// samples gives those of a split, and lowers n to its size.
func samples(ctx context.Context, cfg config.Config, split string, n *int, o source.Options) (sample, error) {
	switch cfg.Data.Kind {
	case "pairs":
		return nil, usageError{errors.New(
			`data.kind "pairs" has no images to draw: trainer data stats shows what its features are like`)}
	case "sentences":
		return nil, usageError{errors.New(
			`data.kind "sentences" has no images to draw: trainer data stats shows what its texts are like`)}
	}
	if cfg.Data.Kind == "regions" {
		return regionSamples(ctx, cfg, split, n, o)
	}
	if split == "train" {
		stream, err := source.Stream(ctx, cfg.Source(), o)
		if err != nil {
			return nil, err
		}
		*n = min(*n, stream.EpochSamples())
		names := []string{batch.Images, batch.Views}[:max(cfg.Data.Views, 1)]
		_, two := batch.Find(stream.Columns(), batch.SecondImages)
		if two {
			names = []string{batch.Images, batch.SecondImages}
		}
		var columns []batch.Column
		for _, name := range names {
			c, ok := batch.Find(stream.Columns(), name)
			if !ok {
				return nil, fmt.Errorf("the training data has no column %q to draw: it has %v", name, stream.Columns())
			}
			columns = append(columns, c)
		}
		row := batch.New(1, columns...).Row(0)
		return func(i int) ([]*transform.Image, []string, error) {
			if err := stream.Sample(uint64(i), row); err != nil {
				return nil, nil, err
			}
			list, err := pictures(cfg, row, columns)
			if err != nil {
				return nil, nil, err
			}
			text, _, err := data.Describe(stream, uint64(i))
			if l, ok := stream.(data.LabelledStream); ok && two {
				classes, _ := l.Labels()
				return list, underBoth(text, classes, l.SampleLabel(uint64(i))), err
			}
			return list, []string{text, secondView}[:len(list)], err
		}, nil
	}
	if next, err := twoPictures(ctx, cfg, split, n, o); next != nil || err != nil {
		return next, err
	}
	cfg.Eval.Folds = 0 // whatever the number of images
	set, err := source.Eval(ctx, cfg.Source(), split, o)
	if err != nil {
		return nil, err
	}
	*n = min(*n, set.NumImages())
	side := cfg.Model.Image.Size
	pixels := make([]float32, 3*side*side)
	return func(i int) ([]*transform.Image, []string, error) {
		if err := set.LoadImage(i, pixels); err != nil {
			return nil, nil, err
		}
		img, err := cfg.ImageInput().Denormalize(pixels, side, side)
		return []*transform.Image{img}, []string{set.Text(set.ImageTexts(i)[0])}, err
	}, nil
}

// encoderOf returns what writes an image in the format that the name of its file asks for.
func encoderOf(file string) (func(io.Writer, image.Image) error, error) {
	switch ext := strings.ToLower(filepath.Ext(file)); ext {
	case ".png":
		return png.Encode, nil
	case ".jpg", ".jpeg":
		return func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, &jpeg.Options{Quality: 90}) }, nil
	default:
		return nil, usageError{fmt.Errorf("--out must end in .png or .jpg (got %q)", file)}
	}
}

// underBoth is what stands under the two pictures of a row: its text with its class where it has one.
func underBoth(text string, names []string, label int32) []string {
	if label != data.UnknownLabel {
		text += ": " + names[label]
	}
	return []string{text, "(right picture)"}
}

// pictures are the images of a row in some columns, as they are before they are normalised.
func pictures(cfg config.Config, row batch.Row, columns []batch.Column) (list []*transform.Image, err error) {
	for _, c := range columns {
		img, err := cfg.ImageInput().Denormalize(row.Floats(c.Name), c.Shape[2], c.Shape[1])
		if err != nil {
			return nil, err
		}
		list = append(list, img)
	}
	return list, nil
}

// twoPictures is samples for a split that is evaluated and whose rows are about two pictures, such as statements of
// NLVR2; nil for others.
func twoPictures(ctx context.Context, cfg config.Config, split string, n *int, o source.Options) (sample, error) {
	if !cfg.Data.ReadsExamples() {
		return nil, nil
	}
	x, err := source.OpenExamples(ctx, cfg.Source(), split, o)
	if err != nil || x.Pictures() < 2 {
		return nil, err
	}
	*n = min(*n, x.Len())
	rows := source.ExampleColumns(cfg.Source(), x, nil)
	var columns []batch.Column
	for _, name := range []string{batch.Images, batch.SecondImages} {
		c, _ := batch.Find(rows.Columns(), name)
		columns = append(columns, c)
	}
	row := batch.New(1, columns...).Row(0)
	return func(i int) ([]*transform.Image, []string, error) {
		if err := rows.Fill(i, row); err != nil {
			return nil, nil, err
		}
		list, err := pictures(cfg, row, columns)
		e := x.Example(i)
		return list, underBoth(e.Text, x.Labels(), e.Label), err
	}, nil
}
