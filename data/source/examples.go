package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
)

// exampleKinds are the kinds of data that are samples of downstream tasks.
func exampleKinds() map[string]Kind {
	kinds := map[string]Kind{}
	for _, t := range all.List {
		if t.Samples != nil {
			kinds[t.Kind] = examplesOf(exampleKind{*t.Samples})
		}
	}
	return kinds
}

// exampleKind is samples of a downstream task.
type exampleKind struct{ tasks.Samples }

// examplesOf is the Kind of samples of a downstream task.
func examplesOf(x exampleKind) Kind {
	open := func(_ context.Context, cfg config.Config, split string, o Options) (data.Examples, error) {
		e, err := x.open(cfg, split)
		return e, rootHint(err, cfg.Data.Root)
	}
	return Kind{
		Splits: func(cfg config.Config) (list []string) {
			if cfg.Data.Drawn() {
				return []string{"val", "test"}
			}
			for _, split := range Splits {
				if len(cfg.Data.Examples.Split(split)) > 0 {
					list = append(list, split)
				}
			}
			return list
		},
		MayLack: true,
		Inputs: func(cfg config.Config, split string) (list []Input) {
			if x.Inputs != nil {
				for _, in := range x.Inputs(cfg.Settings(), cfg.Data.Drawn()) {
					list = append(list, named(cfg, in.Key, in.Name, in.Folder)...)
				}
			}
			if cfg.Data.Drawn() {
				return list
			}
			list = append(list, expanded(cfg, exampleFiles(split), cfg.Data.Examples.Split(split))...)
			return append(list, below(cfg, "data.examples.image_root", cfg.Data.Examples.ImageRoot, true)...)
		},
		Examples: open,
		Stream: func(ctx context.Context, cfg config.Config, o Options) (data.Stream, error) {
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
			c := data.ExampleConfig{TrainConfig: o.train(cfg), ByPicture: x.ByPicture}
			if x.Answers != nil {
				c.Answers = x.Answers(cfg.Settings())
			}
			return data.NewExampleStream(e, c)
		},
		Split: func(ctx context.Context, cfg config.Config, split string, o Options) (data.Dataset, error) {
			e, err := open(ctx, cfg, split, o)
			if err != nil {
				return nil, err
			}
			return data.ExampleDataset{Of: e}, nil
		},
		Captions: func(ctx context.Context, cfg config.Config, o Options) (list []string, err error) {
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
func (x exampleKind) open(cfg config.Config, split string) (data.Examples, error) {
	if cfg.Data.Drawn() {
		if x.Drawn != nil {
			x.Samples = *x.Drawn(cfg.Settings())
		}
		return x.drawn(cfg, split)
	}
	files := cfg.Data.Examples.Split(split)
	if len(files) == 0 {
		return nil, config.Errors{{Path: exampleFiles(split), Msg: "must name at least one file", Hint: "or choose another split"}}
	}
	paths, err := data.Expand(cfg.Data.Root, files)
	if err != nil {
		return nil, err
	}
	of := tasks.SplitFiles{Root: cfg.Data.Root, Split: split, Paths: paths, Of: cfg.Data.Examples.Split}
	f, err := x.Files(cfg.Settings(), of, examples.Options{
		ImageRoot: Below(cfg.Data.Root, cfg.Data.Examples.ImageRoot), MaxPixels: cfg.Data.MaxPixels, MaxBadShare: cfg.Data.MaxBadShare,
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// drawn are the samples of a split about scenes.
func (x exampleKind) drawn(cfg config.Config, split string) (data.Examples, error) {
	w, err := World(cfg)
	if err != nil {
		return nil, err
	}
	e := &data.SceneExamples{Size: cfg.Model.Image.Size, Classes: x.Classes, Scenes: x.Pictures(cfg.Settings()), Split: split, World: w.Config()}
	at, seed := w.Train, cfg.Run.Seed
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
		one, pictures := x.Scene(w, at(n), &tasks.SceneDraw{Seed: seed, Split: split, N: n, At: at})
		if one.ID == "" {
			one.ID = fmt.Sprint(i)
		}
		return one, slices.Clip(pictures)
	}
	return e, nil
}

// heldOutSeed draws the samples of val and test: they are the same whatever the seed of a run.
const heldOutSeed = 20240611

// ExampleColumns says how the samples of a split become rows of an evaluation; tok is nil without columns of text.
func ExampleColumns(cfg config.Config, x data.Examples, tok data.Tokenizer) data.ExampleGallery {
	g := data.ExampleGallery{Of: x, Picture: transform.Eval{Input: ImageInput(cfg), Size: cfg.Model.Image.Size}, Clean: cfg.Data.Clean, MaxWords: cfg.Data.MaxWords}
	if tok != nil {
		g.Text = &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}
	}
	return g
}

// Examples opens a split of samples of a downstream task, at most eval.max_images of them where that is set.
func Examples(ctx context.Context, cfg config.Config, split string, o Options) (data.Examples, error) {
	k, err := kindOf(cfg)
	if err != nil {
		return nil, err
	}
	if k.Examples == nil {
		return nil, fmt.Errorf("source: data.kind %q has no samples of a downstream task: use another kind here", cfg.Data.Kind)
	}
	x, err := k.Examples(ctx, cfg, split, o)
	if err != nil {
		return nil, err
	}
	return data.FirstExamples(x, cfg.Eval.MaxImages), nil
}
