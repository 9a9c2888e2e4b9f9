package vqa

import (
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/tasks"
)

// samples are pictures with questions and their answers.
var samples = &tasks.Samples{
	Pictures: tasks.One,
	Inputs: func(s tasks.Settings, drawn bool) (list []tasks.Input) {
		if e := tasks.Of[Eval](s); !e.Generate {
			list = append(list, tasks.Input{Key: "eval.vqa.candidates", Name: e.Candidates})
		}
		if !drawn {
			list = append(list, tasks.Input{Key: "data.vqa.genome_root", Name: tasks.Of[Files](s).GenomeRoot, Folder: true})
		}
		return list
	},
	Files: func(s tasks.Settings, f tasks.SplitFiles, o examples.Options) (*data.FileExamples, error) {
		share, err := shareFiles(f)
		if err != nil {
			return nil, err
		}
		c := tasks.Of[Files](s)
		return examples.LoadVQA(f.Paths, examples.VQA{
			ImageName: c.ImageName, QuestionType: c.Kinds == QuestionType, NeedAnswers: f.Split == "train", Share: share, GenomeRoot: f.Below(c.GenomeRoot),
		}, o)
	},
	Scene: func(w *scenes.World, s scenes.Scene, d *tasks.SceneDraw) (data.Example, []scenes.Scene) {
		q := w.Question(s, d.Rand())
		return data.Example{Text: q.Text, Kind: q.Kind, Label: data.UnknownLabel, Answers: []data.Answer{{Text: q.Answer, Weight: 1}}}, []scenes.Scene{s}
	},
	Answers: func(s tasks.Settings) data.Answers {
		l := tasks.Of[Loss](s)
		return data.Answers{Most: l.Answers, Tokens: l.Tokens, Clean: data.CleanLower}
	},
}

// shareFiles says which questions of files that other splits name too are of split; nil where none does.
func shareFiles(x tasks.SplitFiles) (func(file, picture string) bool, error) {
	named := map[string][]string{} // splits that name a file
	files := map[string]string{}   // the file that a path leads to
	shared := false
	for _, s := range []string{"train", "val", "test"} {
		if len(x.Of(s)) == 0 {
			continue
		}
		paths, err := data.Expand(x.Root, x.Of(s))
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
		return examples.Split(picture, named[files[file]]) == x.Split
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
