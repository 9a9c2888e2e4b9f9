package source

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// Examples names the samples of a downstream task, of which data.kind says the form ([tasks.md](tasks.md)).
type Examples struct {
	// files | scenes (about the built-in pictures of [data.scenes], with answers that are known exactly)
	Source     string `toml:"source"`
	SplitFiles `when:"source=files"`
	// folder of the pictures that files name; relative to data.root
	ImageRoot string `toml:"image_root" when:"source=files"`
}

// Values of data.examples.source.
const (
	ExamplesOfFiles  = "files"
	ExamplesOfScenes = "scenes"
)

// Defaults implements section.Defaulter.
func (e *Examples) Defaults() { *e = Examples{Source: ExamplesOfFiles} }

// Check implements section.Checked.
func (e *Examples) Check(k *section.Checker) {
	k.OneOf("data.examples.source", ExamplesOfFiles, ExamplesOfScenes)
	if section.Of[Data](k).ReadsExamples() && e.Source == ExamplesOfFiles {
		k.Training("data.examples.train_files", len(e.TrainFiles) > 0,
			fmt.Sprintf(`must name at least one file for data.kind %q`, section.Of[Data](k).Kind),
			`or set data.examples.source = "scenes"`)
	}
	if section.Of[Data](k).ReadsExamples() {
		k.Require("data.kind", k.Has(section.Captions) && !k.Has(section.Stored),
			fmt.Sprintf("must not be %q", section.Of[Data](k).Kind), k.Named()+" has no images with texts")
	}
}

// exampleKind is a kind of data that is samples of a downstream task.
type exampleKind struct {
	// files reads the samples of a split.
	files func(cfg Setup, split string, paths []string, o examples.Options) (*data.FileExamples, error)
	// scene makes a sample of a scene, by a generator that is the sample's own.
	scene func(w *scenes.World, s scenes.Scene, g *sceneDraw) (data.Example, []scenes.Scene)
	// pictures of a sample of scenes, 1 or 2.
	pictures  int
	classes   []string // names of the classes; nil: none
	byPicture bool     // ids of training samples are those of their pictures
	// drawnAs are the samples whose scenes are drawn; nil: these.
	drawnAs func(cfg Setup) exampleKind
	// inputs are the files and folders beside those of data.examples; nil: there are none.
	inputs func(cfg Setup) []Input
	// answers says how answers become columns; nil: there are none.
	answers func(cfg Setup) data.Answers
}

// examplesOf is the Kind of samples of a downstream task.
func examplesOf(x exampleKind) Kind {
	open := func(_ context.Context, cfg Setup, split string, o Options) (data.Examples, error) {
		e, err := x.open(cfg, split)
		return e, RootHint(err, cfg.Data.Root)
	}
	return Kind{
		Splits: func(cfg Setup) []string {
			if cfg.Data.Drawn() {
				return []string{"val", "test"}
			}
			return having(func(d Data, split string) bool { return len(d.Examples.Split(split)) > 0 })(cfg)
		},
		MayLack: true,
		Inputs: func(cfg Setup, split string) (list []Input) {
			if x.inputs != nil {
				list = x.inputs(cfg)
			}
			if cfg.Data.Drawn() {
				return list
			}
			list = append(list, expanded(cfg, exampleFiles(split), cfg.Data.Examples.Split(split))...)
			return append(list, Under(cfg, "data.examples.image_root", cfg.Data.Examples.ImageRoot, true)...)
		},
		Examples: open,
		Stream: func(ctx context.Context, cfg Setup, o Options) (data.Stream, error) {
			e, err := open(ctx, cfg, "train", o)
			if err != nil {
				return nil, err
			}
			if f, ok := e.(*data.FileExamples); ok {
				cache, err := newCache(cfg, o.Warn)
				if err != nil {
					return nil, err
				}
				f.UseCache(cache)
			}
			c := data.ExampleConfig{TrainConfig: o.train(cfg), ByPicture: x.byPicture}
			if x.answers != nil {
				c.Answers = x.answers(cfg)
			}
			return data.NewExampleStream(e, c)
		},
		Split: func(ctx context.Context, cfg Setup, split string, o Options) (data.Dataset, error) {
			e, err := open(ctx, cfg, split, o)
			if err != nil {
				return nil, err
			}
			return data.ExampleDataset{Of: e}, nil
		},
		Captions: func(ctx context.Context, cfg Setup, o Options) (list []string, err error) {
			e, err := open(ctx, cfg, "train", o)
			if err != nil {
				return nil, err
			}
			n := e.Len()
			if cfg.Data.Drawn() {
				n = vocabScenes
			}
			for i := range n {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				one := e.Example(i)
				list = append(list, data.Clean(cfg.Data.Clean, one.Text, cfg.Data.MaxWords))
				for _, a := range one.Answers {
					list = append(list, data.Clean(cfg.Data.Clean, a.Text, 0))
				}
			}
			return list, nil
		},
	}
}

// exampleFiles is the key of the files of a split.
func exampleFiles(split string) string { return "data.examples." + split + "_files" }

// open opens the samples of a split.
func (x exampleKind) open(cfg Setup, split string) (data.Examples, error) {
	if cfg.Data.Drawn() {
		if x.drawnAs != nil {
			x = x.drawnAs(cfg)
		}
		return x.drawn(cfg, split)
	}
	files := cfg.Data.Examples.Split(split)
	if len(files) == 0 {
		return nil, unnamed(exampleFiles(split), "at least one file")
	}
	paths, err := data.Expand(cfg.Data.Root, files)
	if err != nil {
		return nil, err
	}
	f, err := x.files(cfg, split, paths, examples.Options{
		ImageRoot: Below(cfg.Data.Root, cfg.Data.Examples.ImageRoot), MaxPixels: cfg.Data.MaxPixels,
		MaxBadShare: cfg.Data.MaxBadShare,
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// drawn are the samples of a split about scenes.
func (x exampleKind) drawn(cfg Setup, split string) (data.Examples, error) {
	w, err := World(cfg)
	if err != nil {
		return nil, err
	}
	e := &data.SceneExamples{Size: cfg.ImageSize, Classes: x.classes, Scenes: x.pictures, Split: split,
		World: w.Config()}
	at, seed := w.Train, cfg.Seed
	switch split {
	case "train":
		e.Samples, e.NoEnd = cfg.Data.Scenes.EpochSamples, true
	case "val":
		e.Samples, seed = w.NumVal(), heldOutSeed
		at = func(i uint64) scenes.Scene { return w.Val(int(i % uint64(w.NumVal()))) }
	case "test":
		e.Samples, seed = w.NumTest(), heldOutSeed
		at = func(i uint64) scenes.Scene { return w.Test(int(i % uint64(w.NumTest()))) }
	default:
		return nil, fmt.Errorf("source: scenes have no split %q: use %v", split, Splits)
	}
	e.Make = func(i int) (data.Example, []scenes.Scene) {
		n := uint64(i)
		one, pictures := x.scene(w, at(n), &sceneDraw{seed: seed, split: split, n: n, at: at})
		if one.ID == "" {
			one.ID = fmt.Sprint(i)
		}
		return one, slices.Clip(pictures)
	}
	return e, nil
}

// heldOutSeed draws the samples of val and test: they are the same whatever the seed of a run.
const heldOutSeed = 20240611

// sceneDraw is what sample n of a split is drawn with.
type sceneDraw struct {
	seed  uint64
	split string
	n     uint64
	at    func(i uint64) scenes.Scene
}

// rand is the generator of the sample.
func (g *sceneDraw) rand() *rand.Rand { return rng.New(g.seed, rng.Scenes+"/examples/"+g.split, g.n) }

// ExampleColumns says how the samples of a split become rows of an evaluation; tok is nil without columns of text.
func ExampleColumns(cfg Setup, x data.Examples, tok data.Tokenizer) data.ExampleGallery {
	g := data.ExampleGallery{Of: x, Picture: transform.Eval{Input: cfg.Input, Size: cfg.ImageSize},
		Clean: cfg.Data.Clean, MaxWords: cfg.Data.MaxWords}
	if tok != nil {
		g.Text = &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}
	}
	return g
}

// OpenExamples opens a split of samples of a downstream task, at most eval.max_images of them where that is set.
func OpenExamples(ctx context.Context, cfg Setup, split string, o Options) (data.Examples, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	if k.Examples == nil {
		return nil, fmt.Errorf("source: data.kind %q has no samples of a downstream task: use another kind here",
			cfg.Data.Kind)
	}
	x, err := k.Examples(ctx, cfg, split, o)
	if err != nil {
		return nil, err
	}
	return data.FirstExamples(x, cfg.MaxImages), nil
}
