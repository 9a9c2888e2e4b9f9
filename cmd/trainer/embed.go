package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
)

func newEmbedCommand() *cobra.Command {
	var f runFlags
	var path, split, out string
	c := &cobra.Command{
		Use:   "embed",
		Short: "Write the features of a split's images and captions to files",
		Long: `embed encodes the images and captions of a split with a checkpoint and writes

  features.safetensors   image (N, C), text (M, C), text_image (M): the row of the image
                         that a caption belongs to, image_id (N)
  images.jsonl           a line per row of image: its name and id; of stored features
                         (data.kind = "pairs") the id is the row in the files
  texts.jsonl            a line per row of text: the caption and the row of its image;
                         not of stored features, which have no captions

The product of a row of image and a row of text is the score by which the model compares
pairs (eval.score; by default that of training without its geodesic): nothing has to be
normalised, and learned metrics and weights are folded into the images. Where that changes
them, image_features (N, C) are the images as the head gives them, to be compared with
other images. Scores with a distance or an angle are no products: then image has the
features as they are, the metadata says product = "false", and a note does.

A system of images alone gives the class token before any head as image, and no texts.
The features of a whole split stand in memory, 4 x (N+M) x C bytes, and folded images 4 x N x C.`,
		Example: `  trainer embed --checkpoint runs/quickstart
  trainer embed --checkpoint runs/geoalign --set eval.score=cosine --out cosine
  trainer embed --checkpoint runs/flickr8k --split train --out runs/flickr8k/train --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if path == "" {
				return usageError{errors.New("embed needs --checkpoint: a run or step folder")}
			}
			return embedRun(c, &f, path, split, out)
		},
	}
	f.config.add(c)
	overCheckpoint(c)
	f.output.add(c)
	c.Flags().StringVar(&path, "checkpoint", "", "run or step `folder`")
	c.Flags().StringVar(&split, "split", "", "train, val or test; default: eval.split")
	c.Flags().StringVar(&out, "out", "", "`folder` to write (default RUN/embeddings-SPLIT)")
	return c
}

func embedRun(c *cobra.Command, f *runFlags, path, split, out string) error {
	t, err := run.Open(path, f.opening(c))
	if err != nil {
		return err
	}
	defer t.Close()
	split = cmp.Or(split, t.Config.Eval.Split)
	if err := checkFinite(t.Config, split); err != nil {
		return err
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	defer bar.done()
	done, err := t.Embed(c.Context(), split, out, bar.show)
	bar.done()
	if err != nil {
		return err
	}
	if done.Score != "" && !done.Product {
		fmt.Fprintf(f.output.note(c), "note: the score %s is not a product of features: image has them as the head gives them\n", done.Score)
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), done)
	}
	fmt.Fprintf(c.OutOrStdout(), "embeddings of %s: %s and %s of %d channels in %s\n", split, words.Count(done.Images, "image"), words.Count(done.Texts, "text"), done.Dim, done.Path)
	return nil
}
