package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// Files of a folder of embeddings.
const (
	FeaturesFile = "features.safetensors"
	ImagesFile   = "images.jsonl"
	TextsFile    = "texts.jsonl"
)

// Embedded is what Embed did.
type Embedded struct {
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

// Embed encodes a split (empty: eval.split) and writes its features with the names of their
// rows to the folder out (empty: RUN/embeddings-SPLIT). progress is told how much of a
// phase is done and may be nil. The features of the whole split stand in memory.
func (t *Trained) Embed(ctx context.Context, split, out string, progress func(phase string, done, total int)) (Embedded, error) {
	split = t.split(split)
	if out == "" {
		out = filepath.Join(t.Folder(), "embeddings-"+split)
	}
	cfg := t.Config
	cfg.Eval.Folds = 0 // the split is not ranked
	set, err := OpenSplit(cfg, split, t.log)
	if err != nil {
		return Embedded{}, err
	}
	if err := os.MkdirAll(out, 0o777); err != nil { // before the work
		return Embedded{}, fmt.Errorf("%w: choose another folder with --out", err)
	}
	if err := t.Load(); err != nil {
		return Embedded{}, err
	}
	ck := t.Checkpoint
	done := Embedded{Path: out, Model: ck.Path, Step: ck.Step, Split: split, Images: set.Len()}
	encoding := tasks.Encoding{BatchSize: cfg.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Progress: progress}
	tensors, err := t.embed(ctx, set, encoding, &done)
	if err != nil {
		return done, err
	}
	return done, writeEmbeddings(set, tensors, done)
}

// embed encodes set and completes what is said of it.
func (t *Trained) embed(ctx context.Context, set *Split, e tasks.Encoding, done *Embedded) ([]safetensors.Tensor, error) {
	cfg, m := t.Config, t.Model
	ids := make([]int64, set.Len())
	for i := range ids {
		ids[i] = set.ImageID(i)
	}
	rows := func(name string, x []float32) safetensors.Tensor {
		return safetensors.Tensor{Name: name, Shape: []int{len(x) / done.Dim, done.Dim}, Data: x}
	}
	tensors := []safetensors.Tensor{{Name: "image_id", Shape: []int{len(ids)}, Data: ids}}
	if cfg.Model.ImagesOnly() {
		done.Dim = m.Image().Width()
		x, err := e.ClassTokens(ctx, m.Image(), set.Images(), "encoding images")
		return append(tensors, rows("image", x)), err
	}
	score, err := m.PairScore()
	if err != nil {
		return nil, err
	}
	gallery, err := set.Texts(textColumns(cfg, t.Tokenizer))
	if err != nil {
		return nil, err
	}
	done.Dim, done.Texts, done.Space = m.Dim(), gallery.Len(), cfg.Model.Head.Topology
	if cfg.Model.Fitted() {
		done.Space = "sphere" // of any map
	}
	done.Score, done.Product = score.String(), score.Folds()
	texts, err := e.Features(ctx, m.Text(), gallery, "encoding texts")
	if err != nil {
		return nil, err
	}
	images, err := e.Features(ctx, m.Image(), set.Images(), "encoding images")
	if err != nil {
		return nil, err
	}
	owner := make([]int64, gallery.Len())
	for j := range owner {
		owner[j] = int64(set.TextImage(j))
	}
	tensors = append(tensors, safetensors.Tensor{Name: "text_image", Shape: []int{len(owner)}, Data: owner}, rows("text", texts))
	if !score.Folds() || score.Identity() {
		return append(tensors, rows("image", images)), nil
	}
	folded := make([]float32, len(images))
	if err := score.FoldImages(folded, images, set.Len()); err != nil {
		return nil, err
	}
	return append(tensors, rows("image", folded), rows("image_features", images)), nil
}

// namedImages are galleries that say what their images are: files and scenes, or the rows
// of stored features.
type namedImages interface{ ImageName(i int) string }

// writeEmbeddings writes the folder done.Path; each file is there as a whole or not at all.
func writeEmbeddings(set *Split, tensors []safetensors.Tensor, done Embedded) error {
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
	if e, ok := set.Galleries.(namedImages); ok {
		err := files.ReplaceFrom(filepath.Join(done.Path, ImagesFile), lines(done.Images, func(i int) any { return image{i, e.ImageName(i), set.ImageID(i)} }))
		if err != nil {
			return err
		}
	}
	if e := set.Eval; e != nil && done.Texts > 0 { // stored features have no captions
		err := files.ReplaceFrom(filepath.Join(done.Path, TextsFile), lines(done.Texts, func(j int) any { return text{j, e.TextImage(j), e.Text(j)} }))
		if err != nil {
			return err
		}
	}
	meta := map[string]string{"model": done.Model, "step": strconv.Itoa(done.Step), "split": done.Split,
		"score": done.Score, "product": strconv.FormatBool(done.Product), "space": done.Space}
	return files.ReplaceFrom(filepath.Join(done.Path, FeaturesFile), func(w io.Writer) error { return safetensors.Write(w, tensors, meta) })
}
