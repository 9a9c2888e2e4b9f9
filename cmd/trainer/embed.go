package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/run/embed"
)

// embedFlags are the flags of embed.
type embedFlags struct {
	run        runFlags
	checkpoint string
	model      string
	split, out string
	twin       bool
	in         embed.Inputs
}

func newEmbedCommand() *cobra.Command {
	var f embedFlags
	c := &cobra.Command{
		Use:   "embed [RUN]",
		Short: "Embed a split, or files of images, texts or features, as a gallery",
		Long: `embed encodes images and texts with a checkpoint. What it writes is a gallery, which
search and serve read.

Of a split it writes

  features.safetensors   image (N, C), text (M, C), text_image (M): the row of the image
                         that a caption belongs to, image_id (N)
  images.jsonl           a line per row of image: its name and id; of stored features
                         (data.kind = "pairs") the id is the row in the files
  texts.jsonl            a line per row of text: the caption and the row of its image;
                         not of stored features, which have no captions

With --images, --texts or --rows it encodes files of any length, in shards:

  --images DIR|LIST      image files below a folder, links to folders followed, or a path
                         per line
  --texts FILE           a text per line; blank lines are passed over
  --rows FILE            rows of features (.npy, .npz, .safetensors, .pt, .parquet or a
                         folder of .pt files), for alignment heads or a closed form;
                         --side says of which encoder, --names FILE has a line per row
                         that search shows

  images-00000.safetensors, .jsonl, ...   the features and names of --shard inputs
                                          (texts-00000 of texts)
  index.json                              the shards with sizes and checksums, the model

What was met and not embedded is counted, with the reason ("inputs").

Interrupted, the same command goes on with the missing shards. Shards that were cut or
damaged, and shards whose images, texts or rows have changed since, are made anew.

All files have checksums, which search and inspect --verify compare.

--dims 64 keeps the first 64 channels of features, scaled to length 1 again on a sphere: a
gallery of a sixth of the size of one of 384, for a model that was trained to have them
(objective.matryoshka.dims). Queries of such a gallery are truncated alike.

With --out FILE.npy, FILE.safetensors or FILE.parquet it writes one file of features, with
the names of its rows in FILE.jsonl, or of a table in its column name: data.pairs trains on
such files, and other programs read them. --model encodes so with weights as they are, or
with a model of the Hugging Face hub by its name, without a run.

The product of a row of image and a row of text is the score by which the model compares
pairs (eval.score; by default that of training without its geodesic): nothing has to be
normalised, and learned metrics and weights are folded into the images. Where that changes
them, image_features (N, C) are the images as the head gives them, to be compared with
other images. Scores with a distance or an angle are not products: then image has the
features as they are, the metadata says product = "false", and a note does.

A system of images alone gives the class token before any head as image, and no texts.
Memory holds the features of a batch and the names of a shard.`,
		Example: `  trainer embed runs/quickstart
  trainer embed runs/geoalign --set eval.score=cosine --out cosine
  trainer embed runs/flickr8k --split train --out runs/flickr8k/train --json
  trainer embed runs/flickr8k --images photos --out gallery --skip-bad
  trainer embed runs/flickr8k --texts captions.txt --out captions
  trainer embed --model sentence-transformers/all-MiniLM-L6-v2 --texts captions.txt --out captions.npy
  trainer embed --model dinov2-base --images photos --out photos.parquet
  trainer embed runs/heads --rows clip.npy --side image --shard 50000
  trainer embed runs/align --rows features/image.npy --names features/images.txt`,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.checkpoint == "" && f.model == "":
				return usageError{errors.New("embed needs RUN: a run or step folder, or --model: weights or a name of the hub")}
			case f.model != "" || embed.IsFeatureFile(f.out):
				return f.features(c)
			}
			return f.execute(c)
		},
	}
	f.run.config.add(c)
	overCheckpoint(c)
	f.run.output.add(c)
	takesRun(c, &f.checkpoint)
	c.Flags().StringVar(&f.model, "model", "",
		"`PATH` of weights, or a name of the hub, whose features are written to a file: --out")
	f.run.config.addPrompt(c)
	c.Flags().StringVar(&f.split, "split", "", "train, val or test; default: eval.split")
	c.Flags().StringVar(&f.out, "out", "",
		"`folder` to write (default RUN/embeddings-SPLIT, of files RUN/embeddings-NAME), or a file of features: .npy, .safetensors or .parquet")
	c.Flags().StringVar(&f.in.Images, "images", "",
		"`folder` of images, or file with a path per line, instead of a split")
	c.Flags().StringVar(&f.in.Texts, "texts", "", "`file` with a text per line, instead of a split")
	c.Flags().StringVar(&f.in.Rows, "rows", "",
		"`file` of features for alignment heads or a closed form, instead of a split")
	c.Flags().StringVar(&f.in.Tensor, "tensor", "", "`name` of the tensor of --rows; default: its only one")
	c.Flags().StringVar(&f.in.Names, "names", "",
		"`file` with a line per row of --rows that names it; default: they are numbered")
	c.Flags().StringVar(&f.in.Payload, "payload", "",
		"`file` with a JSON object per line of a list of --images, of --texts or of --rows: what else is known of it, for --filter of search")
	c.Flags().StringVar(&f.in.Side, "side", "image", "image or text: which head reads --rows, or which side of a split goes to a file of features")
	c.Flags().IntVar(&f.in.Dims, "dims", 0,
		"leading channels to keep of features, for a model that objective.matryoshka.dims trained; default: all")
	c.Flags().IntVar(&f.in.Shard, "shard", 100_000, "`inputs` of a shard of files")
	c.Flags().BoolVar(&f.in.LeaveOut, "skip-bad", false,
		"leave out files, lines and rows that cannot be read, with a note")
	addTwin(c, &f.twin)
	return c
}

// fileFlags say that files are embedded, filesOnly what is of them alone.
var (
	fileFlags = []string{"images", "texts", "rows"}
	filesOnly = []string{"shard", "skip-bad", "payload"}
	rowsOnly  = []string{"names", "tensor", "side"}
)

// check refuses flags that do not go together. files says that files are embedded.
func (f *embedFlags) check(c *cobra.Command) (files bool, err error) {
	for i, name := range fileFlags {
		if err := apart(c, name, append([]string{"split"}, fileFlags[i+1:]...)...); err != nil {
			return false, err
		}
		files = files || c.Flags().Changed(name)
	}
	for _, name := range filesOnly {
		if c.Flags().Changed(name) && !files {
			return false, usageError{fmt.Errorf("--%s is of --images, --texts or --rows: name one of these", name)}
		}
	}
	for _, name := range rowsOnly {
		if c.Flags().Changed(name) && !c.Flags().Changed("rows") &&
			!(name == "side" && embed.IsFeatureFile(f.out)) {
			return false, usageError{fmt.Errorf("--%s is of --rows: name a file of features", name)}
		}
	}
	if f.in.Dims < 1 && c.Flags().Changed("dims") {
		return false, usageError{fmt.Errorf("--dims must be at least 1 (got %d)", f.in.Dims)}
	}
	if f.in.Shard < 1 { // 0 is the default of the library alone
		return false, usageError{fmt.Errorf("--shard must be at least 1 (got %d)", f.in.Shard)}
	}
	return files, nil
}

// features writes a file of features, of a checkpoint or of weights as they are.
func (f *embedFlags) features(c *cobra.Command) (err error) {
	given, err := f.check(c)
	if err == nil {
		err = apart(c, "model", "checkpoint", "twin")
	}
	switch {
	case err != nil:
		return err
	case !embed.IsFeatureFile(f.out):
		return usageError{fmt.Errorf("--model writes a file of features: name one with --out that ends in .npy, .safetensors or .parquet (got %q); a gallery is made of a run, which trainer import makes of weights", f.out)}
	case groupOf(c).Size() > 1:
		return usageError{errors.New("a file of features is written by one process")}
	}
	path := f.checkpoint
	if f.model != "" {
		if path, err = fetched(c, "model", f.model, f.run.output.quiet); err != nil {
			return err
		}
	}
	opening := f.run.opening(c)
	opening.Twin = f.twin
	t, err := convert.Open(path, opening)
	if err != nil {
		return err
	}
	defer t.Close()
	of := embed.FeaturesOf{Inputs: f.in}
	if !c.Flags().Changed("side") {
		of.Side = ""
	}
	if !given {
		of.Split = cmp.Or(f.split, t.Config.Eval.Split)
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.run.output.quiet)
	defer bar.done()
	done, err := embed.Features(c.Context(), t, of, f.out, bar.show)
	bar.done()
	if err != nil {
		return err
	}
	if f.run.output.json {
		return printJSON(c.OutOrStdout(), done)
	}
	rows := words.Count(done.Images, "image")
	if done.Texts > 0 {
		rows = words.Count(done.Texts, "text")
	}
	fmt.Fprintf(c.OutOrStdout(), "features of %s of %d channels in %s\n", rows, done.Dim, done.Path)
	return nil
}

func (f *embedFlags) execute(c *cobra.Command) error {
	files, err := f.check(c)
	if err != nil {
		return err
	}
	opening := f.run.opening(c)
	opening.Twin = f.twin
	t, err := run.Open(f.checkpoint, opening)
	if err != nil {
		return err
	}
	defer t.Close()
	what := ""
	bar := newPhaseBar(c.ErrOrStderr(), f.run.output.quiet)
	defer bar.done()
	var done embed.Result
	if files {
		what = cmp.Or(f.in.Images, f.in.Texts, f.in.Rows)
		done, err = embed.Files(c.Context(), t, f.in, f.out, bar.show)
	} else {
		what = cmp.Or(f.split, t.Config.Eval.Split)
		if err := checkFinite(t.Config, what); err != nil {
			return err
		}
		done, err = embed.Split(c.Context(), t, what, f.out, f.in.Dims, bar.show)
	}
	bar.done()
	if err != nil || groupOf(c).Rank() > 0 {
		return err
	}
	if done.Score != "" && !done.Product {
		fmt.Fprintf(f.run.output.note(c),
			"note: the score %s is not a product of features: image has them as the head gives them\n", done.Score)
	}
	if f.run.output.json {
		return printJSON(c.OutOrStdout(), done)
	}
	defer func() {
		if !done.Account.Whole() {
			fmt.Fprintf(c.OutOrStdout(), "inputs: %s\n", done.Account)
		}
	}()
	if !files {
		fmt.Fprintf(c.OutOrStdout(), "embeddings of %s: %s and %s of %d channels in %s\n", what,
			words.Count(done.Images, "image"), words.Count(done.Texts, "text"), done.Dim, done.Path)
		return nil
	}
	rows := words.Count(done.Images, "image")
	if done.Texts > 0 {
		rows = words.Count(done.Texts, "text")
	}
	fmt.Fprintf(c.OutOrStdout(), "embeddings of %s: %s of %d channels in %s of %s, %d made now, %d left out\n", what,
		rows, done.Dim, words.Count(done.Shards, "shard"), done.Path, done.Shards-done.Kept, done.LeftOut)
	return nil
}
