package source

import (
	"path/filepath"
	"regexp"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
)

// VQAKind is the data.kind and the task of questions about pictures.
const VQAKind = "vqa"

// VQAFiles says how files of questions about pictures are read (data.kind = "vqa"): questions and annotations of VQA
// v2, ALBEF's lists, or the rows of easy-VQA, which are told apart by what they hold. A file that several of
// data.examples.train_files, val_files and test_files name is divided among these by its pictures.
type VQAFiles struct {
	// name of a picture of VQA v2 in data.examples.image_root, with %d or %012d for its image_id; empty:
	// COCO_<data_subtype>_%012d.jpg
	ImageName string `toml:"image_name"`
	// folder of the pictures of ALBEF's rows with "dataset": "vg", relative to data.root; empty:
	// data.examples.image_root
	GenomeRoot string `toml:"genome_root"`
	// by what accuracies of VQA v2 are told apart: answer_type (yes/no, number, other) | question_type (the first
	// words)
	Kinds string `toml:"kinds"`
}

// Values of data.vqa.kinds.
const (
	VQAAnswerType   = "answer_type"
	VQAQuestionType = "question_type"
)

// imageNumber is a name with one verb for a number.
var imageNumber = regexp.MustCompile(`^[^%]*%(?:0[1-9]\d?)?d[^%]*$`)

// Defaults implements section.Defaulter.
func (v *VQAFiles) Defaults() { *v = VQAFiles{Kinds: VQAAnswerType} }

// Check implements section.Checked.
func (v *VQAFiles) Check(k *section.Checker) {
	k.OneOf("data.vqa.kinds", VQAAnswerType, VQAQuestionType)
	k.Require("data.vqa.image_name", v.ImageName == "" || imageNumber.MatchString(v.ImageName),
		"must have %d or %012d once", "it stands for the image_id")
}

// vqa is data.kind = "vqa": questions about pictures with their answers.
var vqa = examplesOf(exampleKind{
	pictures: 1,
	inputs: func(cfg Setup) (list []Input) {
		list = Named(cfg, "eval.vqa.candidates", cfg.Candidates, false)
		if !cfg.Data.Drawn() {
			list = append(list, Named(cfg, "data.vqa.genome_root", cfg.Data.VQA.GenomeRoot, true)...)
		}
		return list
	},
	files: func(cfg Setup, split string, paths []string, o examples.Options) (*data.FileExamples, error) {
		share, err := shareFiles(cfg, split)
		if err != nil {
			return nil, err
		}
		c := cfg.Data.VQA
		v := examples.VQA{ImageName: c.ImageName, QuestionType: c.Kinds == VQAQuestionType,
			NeedAnswers: split == "train", Share: share}
		if c.GenomeRoot != "" {
			v.GenomeRoot = Below(cfg.Data.Root, c.GenomeRoot)
		}
		return examples.LoadVQA(paths, v, o)
	},
	scene: func(w *scenes.World, s scenes.Scene, g *sceneDraw) (data.Example, []scenes.Scene) {
		q := w.Question(s, g.rand())
		return data.Example{Text: q.Text, Kind: q.Kind, Label: data.UnknownLabel,
			Answers: []data.Answer{{Text: q.Answer, Weight: 1}}}, []scenes.Scene{s}
	},
	answers: func(cfg Setup) data.Answers {
		return cfg.Answers
	},
})

// shareFiles says which questions of files that other splits name too are of split; nil where none does.
func shareFiles(cfg Setup, split string) (func(file, picture string) bool, error) {
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

// fileAt is the absolute path, without links, of the file that a path leads to; of one that is not there the path
// itself.
func fileAt(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return real
		}
	}
	return path
}

func (*VQAFiles) kind() Kind { return vqa }
