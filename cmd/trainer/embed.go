package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// Files of a folder of embeddings.
const (
	featuresFile = "features.safetensors"
	imagesFile   = "images.jsonl"
	textsFile    = "texts.jsonl"
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
  images.jsonl           a line per row of image: its name and id
  texts.jsonl            a line per row of text: the caption and the row of its image

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
	f.output.add(c)
	c.Flags().StringVar(&path, "checkpoint", "", "run or step `folder`")
	c.Flags().StringVar(&split, "split", "", "train, val or test; default: eval.split")
	c.Flags().StringVar(&out, "out", "", "`folder` to write (default RUN/embeddings-SPLIT)")
	return c
}

// embedded is the JSON form of what embed did.
type embedded struct {
	Path    string `json:"path"`
	Model   string `json:"model"` // step folder of the checkpoint
	Step    int    `json:"step"`
	Split   string `json:"split"`
	Images  int    `json:"images"`
	Texts   int    `json:"texts"`
	Dim     int    `json:"dim"`
	Score   string `json:"score,omitempty"`
	Product bool   `json:"product"` // the score is the product of rows
	Space   string `json:"space,omitempty"`
}

func embedRun(c *cobra.Command, f *runFlags, path, split, out string) error {
	ck, cfg, err := openCheckpoint(c, f, path)
	if err != nil {
		return err
	}
	defer ck.Close()
	note := f.output.note(c)
	if split == "" {
		split = cfg.Eval.Split
	}
	if err := checkFinite(cfg, split); err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(runOf(ck), "embeddings-"+split)
	}
	cfg.Eval.Folds = 0 // the split is not ranked
	set, err := openEval(cfg, split, note)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil { // before the work
		return fmt.Errorf("%w: choose another folder with --out", err)
	}
	engine, err := newEngine(cfg)
	if err != nil {
		return err
	}
	defer engine.Close()
	m, tok, err := openModel(cfg, ck, engine)
	if err != nil {
		return err
	}
	defer m.Close()
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	defer bar.done()
	done := embedded{Path: out, Model: ck.Path, Step: ck.Step, Split: split, Images: set.NumImages()}
	encoding := tasks.Encoding{BatchSize: cfg.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Progress: bar.show}
	tensors, err := embedSplit(c.Context(), cfg, m, tok, set, encoding, &done)
	bar.done()
	if err != nil {
		return err
	}
	if err := writeEmbeddings(set, tensors, done); err != nil {
		return err
	}
	if done.Score != "" && !done.Product {
		fmt.Fprintf(note, "note: the score %s is not a product of features: image has them as the head gives them\n", done.Score)
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), done)
	}
	fmt.Fprintf(c.OutOrStdout(), "embeddings of %s: %s and %s of %d channels in %s\n", split, count(done.Images, "image"), count(done.Texts, "text"), done.Dim, out)
	return nil
}

// runOf returns the run folder of a checkpoint.
func runOf(ck *checkpoint.Checkpoint) string {
	dir := filepath.Dir(ck.Path)
	if filepath.Base(dir) == runlog.CheckpointsDir {
		return filepath.Dir(dir)
	}
	return dir
}

// embedSplit encodes set and completes what is said of it.
func embedSplit(ctx context.Context, cfg config.Config, model any, tok data.Tokenizer, set *data.Eval, e tasks.Encoding, done *embedded) ([]safetensors.Tensor, error) {
	ids := make([]int64, set.NumImages())
	for i := range ids {
		ids[i] = set.ImageID(i)
	}
	rows := func(name string, x []float32) safetensors.Tensor {
		return safetensors.Tensor{Name: name, Shape: []int{len(x) / done.Dim, done.Dim}, Data: x}
	}
	tensors := []safetensors.Tensor{{Name: "image_id", Shape: []int{len(ids)}, Data: ids}}
	if cfg.Model.ImagesOnly() {
		m, ok := model.(tasks.ImageModel)
		if !ok {
			return nil, fmt.Errorf("model.system %q has no image encoder", cfg.Model.System)
		}
		done.Dim = m.ImageWidth()
		x, err := classTokens(ctx, e, m, set)
		return append(tensors, rows("image", x)), err
	}
	m, ok := model.(towers)
	if !ok {
		return nil, fmt.Errorf("model.system %q has no image and text encoder", cfg.Model.System)
	}
	score := m.PairScore()
	done.Dim, done.Texts, done.Space = m.Dim(), set.NumTexts(), cfg.Model.Head.Topology
	done.Score, done.Product = score.String(), score.Folds()
	images, texts := make([]float32, 0, set.NumImages()*done.Dim), make([]float32, 0, done.Texts*done.Dim)
	if err := e.EncodeTexts(ctx, m, tok, set, func(_ int, _ []int32, _, x []float32) { texts = append(texts, x...) }); err != nil {
		return nil, err
	}
	if err := e.EncodeImages(ctx, m, set, func(_ int, _, x []float32) { images = append(images, x...) }); err != nil {
		return nil, err
	}
	owner := make([]int64, set.NumTexts())
	for j := range owner {
		owner[j] = int64(set.TextImage(j))
	}
	tensors = append(tensors, safetensors.Tensor{Name: "text_image", Shape: []int{len(owner)}, Data: owner}, rows("text", texts))
	if !score.Folds() || score.Identity() {
		return append(tensors, rows("image", images)), nil
	}
	folded := make([]float32, len(images))
	if err := score.FoldImages(folded, images, set.NumImages()); err != nil {
		return nil, err
	}
	return append(tensors, rows("image", folded), rows("image_features", images)), nil
}

// writeEmbeddings writes the folder done.Path; each file is there as a whole or not at all.
func writeEmbeddings(set *data.Eval, tensors []safetensors.Tensor, done embedded) error {
	lines := func(n int, row func(i int) any) func(w io.Writer) error {
		return func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			for i := range n {
				if err := e.Encode(row(i)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	type image struct {
		Row  int    `json:"row"`
		Name string `json:"name"`
		ID   int64  `json:"image_id"`
	}
	type text struct {
		Row     int    `json:"row"`
		Image   int    `json:"image"` // its row
		Caption string `json:"caption"`
	}
	err := runlog.WriteFrom(filepath.Join(done.Path, imagesFile), lines(done.Images, func(i int) any { return image{i, set.ImageName(i), set.ImageID(i)} }))
	if err != nil {
		return err
	}
	if done.Texts > 0 {
		err := runlog.WriteFrom(filepath.Join(done.Path, textsFile), lines(done.Texts, func(j int) any { return text{j, set.TextImage(j), set.Text(j)} }))
		if err != nil {
			return err
		}
	}
	meta := map[string]string{"model": done.Model, "step": strconv.Itoa(done.Step), "split": done.Split,
		"score": done.Score, "product": strconv.FormatBool(done.Product), "space": done.Space}
	return runlog.WriteFrom(filepath.Join(done.Path, featuresFile), func(w io.Writer) error { return safetensors.Write(w, tensors, meta) })
}
