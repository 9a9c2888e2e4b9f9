package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/descriptor"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
)

func newFeaturesCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var dir, split, text string
	c := &cobra.Command{
		Use:   "features",
		Short: "Write plain features of images and captions, to try alignment without an encoder",
		Long: `features writes plain features of images and captions, as a stand-in for the features of two
frozen encoders: mean colours and edges of the cells of an image, words and pairs of nearby words
of a caption. Nothing in them is learned, and neither side knows the other. It writes

  image.npy, text.npy      a row per image and per caption
  images.txt, texts.txt    the name of each row, one per line
  pairs.tsv                which rows belong together, if images have several captions
                           (data.pairs.index)

Without --config it describes the built-in scenes. --text writes the features of one text, as a
query for search --text-features.`,
		Example: `  trainer data features --out runs/features
  trainer data features --text "a big blue star at the top left" --out query.npy
  trainer data features --config configs/flickr8k.toml --set data.root=/data/flickr8k --split train`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("text") {
				return writeQuery(c, text, dir, &out)
			}
			cfg, err := flags.loadToUse(c)
			if err != nil {
				return err
			}
			if err := checkFinite(cfg, split); err != nil {
				return err
			}
			return writeFeatures(c, cfg, split, dir, &out)
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().StringVar(&dir, "out", "features", "`folder` to write, with --text a .npy file")
	c.Flags().StringVar(&split, "split", "test", "train (of data that ends), val or test")
	c.Flags().StringVar(&text, "text", "", "write the features of these words alone")
	return c
}

// writeFeatures writes the features of a split to the folder dir.
func writeFeatures(c *cobra.Command, cfg config.Config, split, dir string, out *outputFlags) error {
	bar := newPhaseBar(c.ErrOrStderr(), out.quiet || out.json)
	defer bar.done()
	splits, err := openSplits(c.Context(), cfg, split, source.Options{Progress: bar.show})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("%w: choose another folder with --out", err)
	}
	w, err := descriptor.Write(c.Context(), splits[0].ds, dir,
		func(done, of int) { bar.show("describing "+split, done, of) })
	bar.done()
	if err != nil {
		return err
	}
	if w.LeftOut > 0 {
		fmt.Fprintf(out.note(c), "note: %s without a caption are left out\n", words.Count(w.LeftOut, "image"))
	}
	if w.Index {
		fmt.Fprintf(out.note(c), "note: images have several captions: set data.pairs.index = %q\n",
			descriptor.PairsFile)
	}
	if out.json {
		return printJSON(c.OutOrStdout(), struct {
			Path string `json:"path"`
			descriptor.Written
		}{dir, w})
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "features of %s of %d channels and %s of %d in %s\n",
		words.Count(w.Images, "image"), descriptor.ImageWidth, words.Count(w.Texts, "text"), descriptor.TextWidth, dir)
	return err
}

// writeQuery writes the features of a text to the file path.
func writeQuery(c *cobra.Command, text, path string, out *outputFlags) error {
	switch {
	case strings.TrimSpace(data.CleanCaption(text, 0)) == "":
		return usageError{errors.New("--text has no words")}
	case strings.ToLower(filepath.Ext(path)) != ".npy":
		return usageError{fmt.Errorf("--out must name a .npy file for --text (got %q)", path)}
	}
	if err := apart(c, "text", "config", "set", "split", "seed"); err != nil {
		return err
	}
	if err := features.Write(path, func(
		emit func([]float32) error) error {
		return emit(descriptor.Text(text))
	}); err != nil {
		return fmt.Errorf("%w: choose another file with --out", err)
	}
	if out.json {
		return printJSON(c.OutOrStdout(), map[string]any{"path": path, "texts": 1, "channels": descriptor.TextWidth})
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "features of 1 text of %d channels in %s\n", descriptor.TextWidth, path)
	return err
}
