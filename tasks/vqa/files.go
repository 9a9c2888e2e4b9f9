package vqa

import (
	"regexp"

	"github.com/geoalign/geoalign/config/section"
)

// Files says how files of questions about pictures are read (data.kind = "vqa"): questions and annotations of VQA v2, ALBEF's lists, or
// the rows of easy-VQA, which are told apart by what they hold. A file that several of data.examples.train_files, val_files and test_files
// name is divided among these by its pictures.
type Files struct {
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
	AnswerType   = "answer_type"
	QuestionType = "question_type"
)

// imageNumber is a name with one verb for a number.
var imageNumber = regexp.MustCompile(`^[^%]*%(?:0[1-9]\d?)?d[^%]*$`)

// Defaults implements section.Section.
func (v *Files) Defaults() { *v = Files{Kinds: AnswerType} }

// Check implements section.Section.
func (v *Files) Check(k *section.Checker) {
	k.OneOf("kinds", AnswerType, QuestionType)
	k.Require("image_name", v.ImageName == "" || imageNumber.MatchString(v.ImageName), "must have %d or %012d once", "it stands for the image_id")
}
