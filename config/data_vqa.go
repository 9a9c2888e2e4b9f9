package config

import (
	"regexp"
)

// VQAKind is the data.kind and the task of questions about pictures.
const VQAKind = "vqa"

// VQAFiles says how files of questions about pictures are read (data.kind = "vqa"): questions and annotations of VQA v2, ALBEF's lists, or
// the rows of easy-VQA, which are told apart by what they hold. A file that several of data.examples.train_files, val_files and test_files
// name is divided among these by its pictures.
type VQAFiles struct {
	ImageName  string `toml:"image_name"`  // name of a picture of VQA v2 in data.examples.image_root, with %d or %012d for its image_id; empty: COCO_<data_subtype>_%012d.jpg
	GenomeRoot string `toml:"genome_root"` // folder of the pictures of ALBEF's rows with "dataset": "vg", relative to data.root; empty: data.examples.image_root
	Kinds      string `toml:"kinds"`       // by what accuracies of VQA v2 are told apart: answer_type (yes/no, number, other) | question_type (the first words)
}

// Values of data.vqa.kinds.
const (
	VQAAnswerType   = "answer_type"
	VQAQuestionType = "question_type"
)

// imageNumber is a name with one verb for a number.
var imageNumber = regexp.MustCompile(`^[^%]*%(?:0[1-9]\d?)?d[^%]*$`)

func (v *VQAFiles) defaults() { *v = VQAFiles{Kinds: VQAAnswerType} }

func (v *VQAFiles) check(k *checker, _ *Config) {
	k.OneOf("data.vqa.kinds", VQAAnswerType, VQAQuestionType)
	k.Require("data.vqa.image_name", v.ImageName == "" || imageNumber.MatchString(v.ImageName), "must have %d or %012d once", "it stands for the image_id")
}
