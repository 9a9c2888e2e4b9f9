package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/tasks"
)

// Files of a folder of embeddings of a split; package gallery reads them.
const (
	FeaturesFile = gallery.FeaturesFile
	ImagesFile   = gallery.ImagesFile
	TextsFile    = gallery.TextsFile
)

// Result is what Embed did.
type Result struct {
	Path   string `json:"path"`
	Model  string `json:"model"` // step folder of the checkpoint
	Step   int    `json:"step"`
	Split  string `json:"split,omitempty"` // empty: of files
	Images int    `json:"images"`
	Texts  int    `json:"texts"`
	Dim    int    `json:"dim"`
	// channels of features of which rows are the leading ones; 0: rows are whole
	LeadingOf int    `json:"leading_of,omitempty"`
	Score     string `json:"score,omitempty"`
	Product   bool   `json:"product"`         // the score is the product of rows
	Alike     bool   `json:"alike,omitempty"` // images are compared with images by the score
	Space     string `json:"space,omitempty"`
	Twin      bool   `json:"twin,omitempty"` // by the momentum twins

	// Of files alone.
	Shards int `json:"shards,omitempty"`
	Kept   int `json:"kept,omitempty"` // shards that were there already

	LeftOut int              `json:"left_out,omitempty"` // inputs that could not be read
	Account *account.Account `json:"inputs,omitempty"`   // what became of the inputs

	weights   string // see Trained.weights
	evalScore string // eval.score of the configuration
	reading   string // see reading
}

// Folder is where the features of a split of a run are written to unless asked otherwise.
func Folder(run, split string) string { return filepath.Join(run, "embeddings-"+split) }

// Split encodes a split (empty: eval.split) and writes its features, or their leading dims channels (0: all), with the
// names of their rows to the folder out (empty: RUN/embeddings-SPLIT). progress is told how much of a phase is done and
// may be nil. Memory holds the features of a batch. Several processes share the encoding, and rank 0 writes.
func Split(ctx context.Context, t *run.Trained, split, out string, dims int,
	progress func(phase string, done, total int)) (done Result, err error) {
	split = t.SplitName(split)
	if out == "" {
		out = Folder(t.Folder(), split)
	}
	set, err := t.Unranked(ctx, split, progress)
	if err != nil {
		return Result{}, err
	}
	if err := t.Look(ctx, split, set, progress); err != nil {
		return Result{}, err
	}
	folder, err := openFolder(t, out, gallery.ManifestFile) // before the work
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, folder.Release()) }()
	if err := t.LoadForSplit(); err != nil {
		return Result{}, err
	}
	ck := t.Checkpoint
	t.SayUnknownWords(split, set)
	begun := Result{Path: out, Model: ck.Path, Step: ck.Step, Split: split, Twin: t.Twin, weights: t.Weights(),
		evalScore: t.Config.Eval.Score, reading: reading(t.Config)}
	done = begun
	err = t.Tolerate(ctx, set, progress, func() error {
		done = begun
		done.Images, done.LeftOut = set.Len(), set.LeftOut()
		return parallel.Agree(t.Group, writeSplit(ctx, t, set, dims, encodingOf(t, progress), &done, folder.Lost))
	})
	done.Account = set.Account()
	return done, err
}

// openFolder makes the folder out and has rank 0 keep other processes from it; on others the lock is nil. It refuses
// one that holds what was embedded in the other way, whose file is other.
func openFolder(t *run.Trained, out, other string) (l *files.FolderLock, err error) {
	err = parallel.ByFirst(t.Group, func() (err error) {
		if err := os.MkdirAll(out, 0o777); err != nil {
			return fmt.Errorf("%w: choose another folder with --out", err)
		}
		if _, err := os.Stat(filepath.Join(out, other)); err == nil {
			return console.Argument("%s holds another gallery (%s): choose another folder with --out", out, other)
		}
		l, err = folder.Lock(out, t.Say)
		return err
	})
	if err != nil { // of any rank
		return nil, errors.Join(err, l.Release())
	}
	return l, nil
}

// encodingOf says how rows are encoded.
func encodingOf(t *run.Trained, progress func(phase string, done, total int)) tasks.Encoding {
	return tasks.Encoding{BatchSize: t.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: t.Group,
		Progress: progress}
}

// writeSplit encodes set, completes what is said of it and writes the files. Features go by way of
// files without a name, so that memory holds those of a batch.
func writeSplit(ctx context.Context, t *run.Trained, set *run.Split, dims int, e tasks.Encoding, done *Result,
	lost func() error) error {
	rows, err := newRowEncoder(t, dims)
	if err != nil {
		return err
	}
	rows.describe(done)
	var tensors []safetensors.Tensor
	write := func() error {
		if err := lost(); err != nil {
			return err
		}
		return writeEmbeddings(set, tensors, *done)
	}
	alone := t.Config.Has(section.Sentences) // there are no rows of images to name
	if !alone {
		ids := make([]int64, set.Len())
		for i := range ids {
			ids[i] = set.ImageID(i)
		}
		tensors = append(tensors, safetensors.Tensor{Name: "image_id", Shape: []int{len(ids)}, Data: ids})
	}
	add := func(side string, g data.Gallery, phase string) (*spooled, error) {
		s, err := rows.spool(ctx, e, side, g, phase, done.Path, nil)
		if err == nil && t.Group.Rank() == 0 {
			tensors = append(tensors, s.tensors(done.Dim)...)
		}
		return s, err
	}
	if !t.Config.Has(section.ImagesAlone) {
		texts, err := set.Texts(t.TextColumns())
		if err != nil {
			return err
		}
		done.Texts = texts.Len()
		owner := make([]int64, done.Texts)
		for j := range owner {
			owner[j] = int64(set.TextImage(j))
		}
		if !alone {
			tensors = append(tensors, safetensors.Tensor{Name: "text_image", Shape: []int{len(owner)}, Data: owner})
		}
		s, err := add(gallery.Text, texts, "encoding texts")
		if err != nil {
			return err
		}
		defer s.Close()
	}
	if alone {
		done.Images = 0
		return parallel.Alone(t.Group, write)
	}
	images, err := add(gallery.Image, set.Images(), "encoding images")
	if err != nil {
		return err
	}
	defer images.Close()
	return parallel.Alone(t.Group, write)
}

// absolute is the path by which a gallery names its model, from whatever folder it is searched.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// namedImages are galleries that say what their images are: files and scenes, or the rows
// of stored features.
type namedImages interface{ ImageName(i int) string }

// writeEmbeddings writes the folder done.Path; each file is there as a whole or not at all. The features have the
// sums of all files.
func writeEmbeddings(set *run.Split, tensors []safetensors.Tensor, done Result) error {
	meta := map[string]string{"model": absolute(done.Model), "step": strconv.Itoa(done.Step), "split": done.Split,
		"score": done.Score, "product": strconv.FormatBool(done.Product), "space": done.Space,
		"eval_score": done.evalScore}
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
	// names writes the names of n rows. A file of what was embedded there before would name rows that have none.
	names := func(file string, n int, row func(i int) any) error {
		path := filepath.Join(done.Path, file)
		if row != nil && n > 0 {
			_, sum, err := gallery.ReplaceSummed(path, func(w io.Writer) error { return gallery.WriteLines(w, n, row) })
			meta[gallery.SumOf(file)] = sum
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var images, texts func(i int) any
	if e, ok := set.Galleries.(namedImages); ok {
		images = func(i int) any { return image{i, e.ImageName(i), set.ImageID(i)} }
	}
	if e := set.Eval; e != nil { // stored features have no captions
		texts = func(j int) any { return text{j, e.TextImage(j), e.Text(j)} }
	}
	if err := names(ImagesFile, done.Images, images); err != nil {
		return err
	}
	if err := names(TextsFile, done.Texts, texts); err != nil {
		return err
	}
	if done.Twin {
		meta["twin"] = "true"
	}
	if done.LeadingOf > 0 {
		meta["leading_of"] = strconv.Itoa(done.LeadingOf)
	}
	if done.Alike {
		meta["alike"] = "true"
	}
	if done.weights != "" {
		meta["weights"] = done.weights
	}
	if done.reading != "" && done.Texts > 0 {
		meta["reading"] = done.reading
	}
	return files.ReplaceFrom(filepath.Join(done.Path, FeaturesFile),
		func(w io.Writer) error { return safetensors.WriteSummed(w, tensors, meta) })
}
