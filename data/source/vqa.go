package source

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
)

// vqa is data.kind = "vqa": questions about pictures with their answers.
var vqa = examplesOf(exampleKind{
	pictures: 1,
	inputs: func(cfg config.Config) (list []Input) {
		if v := cfg.Eval.VQA; !v.Generate {
			list = named(cfg, "eval.vqa.candidates", v.Candidates, false)
		}
		if !cfg.Data.Drawn() {
			list = append(list, named(cfg, "data.vqa.genome_root", cfg.Data.VQA.GenomeRoot, true)...)
		}
		return list
	},
	files: func(cfg config.Config, split string, paths []string, o examples.Options) (*data.FileExamples, error) {
		share, err := shareFiles(cfg, split)
		if err != nil {
			return nil, err
		}
		c := cfg.Data.VQA
		v := examples.VQA{ImageName: c.ImageName, QuestionType: c.Kinds == config.VQAQuestionType, NeedAnswers: split == "train", Share: share}
		if c.GenomeRoot != "" {
			v.GenomeRoot = Below(cfg.Data.Root, c.GenomeRoot)
		}
		return examples.LoadVQA(paths, v, o)
	},
	scene: func(w *scenes.World, s scenes.Scene, g *sceneDraw) (data.Example, []scenes.Scene) {
		q := w.Question(s, g.rand())
		return data.Example{Text: q.Text, Kind: q.Kind, Label: data.UnknownLabel, Answers: []data.Answer{{Text: q.Answer, Weight: 1}}}, []scenes.Scene{s}
	},
	answers: func(cfg config.Config) data.Answers {
		return data.Answers{Most: cfg.Objective.VQA.Answers, Tokens: cfg.Objective.VQA.Tokens, Clean: data.CleanLower}
	},
})

// shareFiles says which questions of files that other splits name too are of split; nil where none does.
func shareFiles(cfg config.Config, split string) (func(file, picture string) bool, error) {
	named := map[string][]string{} // splits that name a file
	files := map[string]string{}   // the file that a path leads to
	shared := false
	for _, s := range Splits {
		if len(cfg.Data.Examples.Split(s)) == 0 {
			continue
		}
		paths, err := data.Expand(cfg.Data.Root, cfg.Data.Examples.Split(s))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			f := fileAt(p)
			if files[p] = f; !slices.Contains(named[f], s) {
				named[f] = append(named[f], s)
			}
			shared = shared || len(named[f]) > 1
		}
	}
	if !shared {
		return nil, nil
	}
	return func(file, picture string) bool {
		return examples.Split(picture, named[files[file]]) == split
	}, nil
}

// fileAt is the absolute path, without links, of the file that a path leads to; of one that is not there the path itself.
func fileAt(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return real
		}
	}
	return path
}

// Candidates are the answers that a model ranks for questions: those of eval.vqa.candidates, or the commonest of the training data. They
// fail where there are none.
func Candidates(ctx context.Context, cfg config.Config, o Options) ([]string, error) {
	c := cfg.Eval.VQA
	if c.Candidates != "" {
		list, err := examples.LoadAnswers(Below(cfg.Data.Root, c.Candidates))
		return list, rootHint(err, cfg.Data.Root)
	}
	cfg.Eval.MaxImages = 0 // which is of the samples that are evaluated
	x, err := Examples(ctx, cfg, "train", o)
	if err != nil {
		return nil, err
	}
	list := examples.CommonAnswers(x, c.Common)
	if len(list) == 0 {
		return nil, config.Errors{{Path: "eval.vqa.candidates", Msg: "must name a file: no question of the training data has an answer"}}
	}
	return list, nil
}
