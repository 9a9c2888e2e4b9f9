package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/embed"
)

func newRegionsCommand() *cobra.Command {
	var f runFlags
	var o embed.RegionOptions
	var checkpoint string
	var twin bool
	c := &cobra.Command{
		Use:   "regions [RUN]",
		Short: "Write patches of an image tower as features of regions",
		Long: `regions encodes the images of a split and writes the patches of the image tower, or means of grid
cells, as regions: the files that data.kind = "regions" reads.

  SPLIT_ims.npy     features (images, regions, channels)
  SPLIT_boxes.npy   boxes (images, regions, 4)
  SPLIT_caps.txt    captions, those of an image together
  SPLIT_ids.txt     the id of each image

SPLIT is data.regions.train, val or test. The tower is that of a checkpoint or, with --config, the
one of init.image.path; features are the states after its last block. If images have different
numbers of captions, only the first few of each are written.`,
		Example: `  trainer regions runs/quickstart --grid 4 --split test --out regions
  trainer regions --config my.toml --set init.image.path=dinov2-base --grid 6 --split train --out regions`,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Grid < 0 || o.Captions < 0 {
				return usageError{fmt.Errorf("--grid and --captions must be >= 0 (got %d and %d)", o.Grid, o.Captions)}
			}
			bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet || f.output.json)
			o.Progress = bar.show
			done, err := writeRegions(c, &f, o, checkpoint, twin)
			bar.done()
			if err != nil {
				return err
			}
			if done.LeftOut > 0 {
				fmt.Fprintf(f.output.note(c), "note: %s left out: each image has %d\n",
					words.Count(done.LeftOut, "caption"), done.Captions)
			}
			if f.output.json {
				return printJSON(c.OutOrStdout(), done)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "regions of %s: %d of %d channels for each, %s each, in %s\n",
				words.Count(done.Images, "image"), done.Regions, done.Width, words.Count(done.Captions, "caption"),
				done.Path)
			return err
		},
	}
	f.config.add(c)
	overCheckpoint(c)
	f.output.add(c)
	takesRun(c, &checkpoint)
	c.Flags().StringVar(&o.Split, "split", "", "train (of data that ends), val or test; default: eval.split")
	c.Flags().StringVar(&o.Out, "out", "regions", "`folder` to write")
	c.Flags().IntVar(&o.Grid, "grid", 0, "cells in a row of the picture, `N` x N regions; 0: the patches")
	c.Flags().IntVar(&o.Captions, "captions", 0, "captions of an image; 0: as many as every image has")
	addTwin(c, &twin)
	return c
}

func writeRegions(c *cobra.Command, f *runFlags, o embed.RegionOptions, checkpoint string,
	twin bool) (done embed.RegionsWritten, err error) {
	split := func(cfg config.Config) error {
		if o.Split == "" {
			o.Split = cfg.Eval.Split
		}
		return checkFinite(cfg, o.Split)
	}
	if checkpoint == "" {
		cfg, err := f.config.load(c)
		if err != nil {
			return done, err
		}
		if err := split(cfg); err != nil {
			return done, err
		}
		return embed.WriteRegionsOf(c.Context(), cfg, o, f.output.note(c))
	}
	opening := f.opening(c)
	opening.Twin = twin
	t, err := run.Open(checkpoint, opening)
	if err != nil {
		return done, err
	}
	defer t.Close()
	if err := split(t.Config); err != nil {
		return done, err
	}
	return embed.WriteRegions(c.Context(), t, o)
}
