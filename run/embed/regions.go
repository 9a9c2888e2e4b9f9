package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train"
)

// RegionOptions say which features of images are written, and where.
type RegionOptions struct {
	Split    string // empty: eval.split
	Out      string // folder
	Grid     int    // cells in a row of the picture, each the mean of its patches; 0: as many as there are patches
	Captions int    // captions of an image that are written; 0: as many as every image has
	Progress func(phase string, done, total int)
}

// RegionsWritten is what WriteRegions wrote.
type RegionsWritten struct {
	Path     string `json:"path"`
	Split    string `json:"split"` // as it stands in the names of the files
	Images   int    `json:"images"`
	Captions int    `json:"captions"` // of each image
	Regions  int    `json:"regions"`  // of each image
	Width    int    `json:"width"`
	LeftOut  int    `json:"left_out"` // captions
}

// WriteRegions encodes the images of a split with the image tower and writes the cells of its grid as regions, the
// files of data.kind = "regions": SPLIT_ims.npy (N, R, D), SPLIT_boxes.npy (N, R, 4), SPLIT_caps.txt and
// SPLIT_ids.txt. A file is there as a whole or not at all. Memory holds the features of a batch.
func WriteRegions(ctx context.Context, t *run.Trained, o RegionOptions) (RegionsWritten, error) {
	if err := t.Load(); err != nil {
		return RegionsWritten{}, err
	}
	return writeRegions(ctx, t.Model, t.Config, o, t.Say)
}

// WriteRegionsOf is Trained.WriteRegions of the image tower that init.image of a configuration names.
func WriteRegionsOf(ctx context.Context, cfg config.Config, o RegionOptions, log io.Writer) (done RegionsWritten,
	err error) {
	if image, _ := cfg.Towers(); image == "" {
		return done, config.Errors{{Path: "init.image.path", Value: "", Msg: "must name the weights of an image tower",
			Hint: "or name a run with --checkpoint"}}
	}
	tok, err := setup.Tokenizer(ctx, cfg, nil, o.Progress)
	if err != nil {
		return done, err
	}
	from, err := setup.Towers(cfg)
	if err != nil {
		return done, err
	}
	defer from.Close()
	engine, err := setup.Engine(cfg)
	if err != nil {
		return done, err
	}
	defer engine.Close()
	m, err := train.NewModel(cfg, train.ModelOptions{Engine: engine, Tokenizer: tok, Rows: from.WordRows(),
		Start: from})
	if err != nil {
		return done, err
	}
	defer m.Close()
	if err := setup.CheckTowers(cfg, from, m.Params(), console.Lines(log).Say); err != nil {
		return done, err
	}
	return writeRegions(ctx, run.ModelOf(m.Model), cfg, o, console.Lines(log).Say)
}

// regionSplit opens a split whose images are encoded, with its captions as they are written.
func regionSplit(ctx context.Context, cfg config.Config, split string,
	progress func(phase string, done, of int)) (*data.Eval, error) {
	if err := source.CheckSplit(cfg.Source(), split); err != nil {
		return nil, &console.ArgumentError{Err: err}
	}
	ds, err := source.Split(ctx, cfg.Source(), split, source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	return data.NewEval(ds, data.EvalConfig{ImageSize: cfg.Model.Image.Size, Input: cfg.ImageInput(),
		Clean: data.CleanWhitespace})
}

func writeRegions(ctx context.Context, m run.Model, cfg config.Config, o RegionOptions,
	say func(format string, args ...any)) (done RegionsWritten, err error) {
	if cfg.Has(section.Stored) || cfg.Has(section.Sentences) {
		return done, console.Argument("model.system %q has no image tower, whose patches are regions", cfg.Model.System)
	}
	if err := noPictures(cfg); err != nil {
		return done, err
	}
	split := o.Split
	if split == "" {
		split = cfg.Eval.Split
	}
	g, err := newGrid(m.Image(), cfg, o.Grid)
	if err != nil {
		return done, err
	}
	set, err := regionSplit(ctx, cfg, split, o.Progress)
	if err != nil {
		return done, err
	}
	done = RegionsWritten{Path: o.Out, Split: cfg.Data.Regions.Split(split), Images: set.NumImages(),
		Regions: g.cells * g.cells, Width: m.Image().Width()}
	if done.Split == "" {
		done.Split = split
	}
	if done.Captions, err = captionsOfAll(set, o.Captions); err != nil {
		return done, err
	}
	done.LeftOut = set.NumTexts() - done.Captions*set.NumImages()
	if cfg.Model.Image.Resize == "crop" {
		say("note: images are cut to a square, and boxes are shares of that square")
	}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return done, fmt.Errorf("%w: choose another folder with --out", err)
	}
	lock, err := folder.Lock(o.Out, say)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	defer process.Hold()()
	file := func(end string) string { return filepath.Join(o.Out, done.Split+end) }
	if err := writeCaptions(set, done, file); err != nil {
		return done, err
	}
	boxes := g.boxes()
	if err := features.WriteArray(file("_boxes.npy"), []int{done.Regions, 4}, func(emit func([]float32) error) error {
		for range done.Images {
			if err := emit(boxes); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return done, err
	}
	e := tasks.Encoding{BatchSize: cfg.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Progress: o.Progress,
		States: true}
	row := make([]float32, done.Regions*done.Width)
	return done, features.WriteArray(file("_ims.npy"), []int{done.Regions, done.Width},
		func(emit func([]float32) error) error {
			return e.Run(ctx, m.Image(), set.Images(), "encoding "+split, func(x tasks.Encoded) error {
				for i := range x.Rows {
					g.pool(x.States[i*m.Image().Len()*done.Width:], row)
					if err := emit(row); err != nil {
						return err
					}
				}
				return nil
			})
		})
}

// captionsOfAll is the number of captions of each image that are written: n, or where that is 0 the least that one has.
func captionsOfAll(set *data.Eval, n int) (int, error) {
	least, at := set.NumTexts(), 0
	for i := range set.NumImages() {
		if k := len(set.ImageTexts(i)); k < least {
			least, at = k, i
		}
	}
	if n > least {
		return 0, console.Argument("--captions must be at most %s: so many has %s (got %d)", words.Count(least,
			"caption"), set.ImageName(at), n)
	}
	if n == 0 {
		n = least
	}
	return n, nil
}

// writeCaptions writes the captions and the ids of the images.
func writeCaptions(set *data.Eval, done RegionsWritten, file func(end string) string) error {
	var captions, ids strings.Builder
	for i := range set.NumImages() {
		for _, j := range set.ImageTexts(i)[:done.Captions] {
			captions.WriteString(set.Text(j) + "\n")
		}
		fmt.Fprintln(&ids, set.ImageID(i))
	}
	return errors.Join(files.Replace(file("_caps.txt"), []byte(captions.String())),
		files.Replace(file("_ids.txt"), []byte(ids.String())))
}

// grid is the patches of a picture in cells.
type grid struct {
	side  int // patches in a row
	cells int // cells in a row
	first int // token of the first patch
	width int
}

func newGrid(e run.Encoder, cfg config.Config, cells int) (g grid, err error) {
	im := cfg.Model.Image
	g = grid{side: im.Grid(), cells: cells, width: e.Width()}
	if cells == 0 {
		g.cells = g.side
	}
	if g.first = e.Len() - g.side*g.side; g.first < 0 {
		return g, fmt.Errorf("the image tower has %d tokens, fewer than the %d patches of its picture: its patches are not a grid", e.Len(), g.side*g.side)
	}
	if g.cells < 1 || g.cells > g.side {
		return g, console.Argument("--grid must be from 1 to %d, the patches in a row of a picture (got %d)", g.side,
			cells)
	}
	return g, nil
}

// span is the patches of cell i along an axis.
func (g grid) span(i int) (from, to int) { return i * g.side / g.cells, (i + 1) * g.side / g.cells }

// pool sets dst (cells*cells, D) to the means of the patches of each cell, of the tokens of an image.
func (g grid) pool(tokens, dst []float32) {
	clear(dst)
	for r := range g.cells {
		top, bottom := g.span(r)
		for c := range g.cells {
			left, right := g.span(c)
			cell := dst[(r*g.cells+c)*g.width:][:g.width]
			share := 1 / float32((bottom-top)*(right-left))
			for y := top; y < bottom; y++ {
				for x := left; x < right; x++ {
					for k, v := range tokens[(g.first+y*g.side+x)*g.width:][:g.width] {
						cell[k] += share * v
					}
				}
			}
		}
	}
}

// boxes are those of the cells (cells*cells, 4), see batch.RegionBoxes.
func (g grid) boxes() []float32 {
	var list []float32
	n := float32(g.side)
	for r := range g.cells {
		top, bottom := g.span(r)
		for c := range g.cells {
			left, right := g.span(c)
			list = append(list, float32(left)/n, float32(top)/n, float32(right)/n, float32(bottom)/n)
		}
	}
	return list
}
