package zeroshot

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// How the prompts of a class make its score.
const (
	AverageEmbeddings = "embeddings"
	AverageScores     = "scores"
)

// AllImages is the split of eval.zeroshot.images that has all of them.
const AllImages = "all"

// Eval says what zero-shot classification is evaluated on: images with their classes, and prompts
// that name the classes. A system that reads images takes them from a split or a folder and
// writes the prompts by templates; one over stored features reads files of both. Paths start from data.root.
type Eval struct {
	// embeddings (a class is the mean of its prompts in the shared space, brought back to unit length, as in CLIP) |
	// scores (its score is the mean of those of its prompts, as in oblique CLIP)
	Average string `toml:"average" when:"words or image"`

	// folder of images with a folder for each class; empty: the split that is evaluated, whose data has classes
	// (data.kind = "folder" or "scenes")
	Images string `toml:"images" when:"words"`
	// all | train | val | test: which of these images; all where the folder is not divided into folders train, val and
	// test
	ImagesSplit string `toml:"images_split" when:"words and eval.zeroshot.images"`
	// text file with the name of each class on a line, in the order of the names of the folders, or with lines
	// "FOLDER<tab>NAME", several of them for a class with several names; empty: the names of the folders with _ as a
	// space
	Classes string `toml:"classes" when:"words"`
	// prompts, with {} instead of the name of a class
	Templates []string `toml:"templates" when:"words and templates_file="`
	// text file with a template on each line, instead of templates
	TemplatesFile string `toml:"templates_file" when:"words"`

	// file of image features, .npy or .safetensors, of the encoder that the training images are from; empty: no
	// zero-shot classification
	Image string `toml:"image" when:"stored and image"`
	// name of the tensor in a .safetensors file of image features; empty: its only one
	ImageTensor string `toml:"image_tensor" when:"stored and image"`
	// text file with the name of the class of each image, one a line
	ImageLabels string `toml:"image_labels" when:"stored and image"`
	// file of the features of prompts such as "a photo of a dog", .npy or .safetensors, of the encoder of the training
	// texts
	Text string `toml:"text" when:"stored and image"`
	// name of the tensor in a .safetensors file of prompts; empty: its only one
	TextTensor string `toml:"text_tensor" when:"stored and image"`
	// text file with the name of the class of each prompt, one a line
	TextLabels string `toml:"text_labels" when:"stored and image"`
}

// Defaults implements section.Defaulter.
func (z *Eval) Defaults() {
	*z = Eval{Average: AverageEmbeddings, ImagesSplit: AllImages, Templates: []string{"a photo of a " + Place + "."}}
}

// Check implements section.Checked.
func (z *Eval) Check(k *section.Checker) {
	k.OneOf("average", AverageEmbeddings, AverageScores)
	k.OneOf("images_split", AllImages, "train", "val", "test")
	k.Require("templates", len(z.Templates) > 0, "must have at least one template", `such as "a photo of a {}."`)
	for i, t := range z.Templates {
		if err := CheckTemplate(t); err != nil {
			k.Require("templates", false, fmt.Sprintf("number %d %v", i+1, err))
		}
	}
	if z.Image == "" {
		return
	}
	k.Require("image", k.Has(section.Stored), "must be empty",
		fmt.Sprintf("model.system %q", k.System)+
			" reads images, which eval.zeroshot.images names, and no stored features")
	for _, file := range []struct{ name, path string }{{"image", z.Image}, {"text", z.Text}} {
		ext := strings.ToLower(filepath.Ext(file.path))
		k.Require(file.name, file.path != "", "must name a file of features",
			"eval.zeroshot.image asks for classification by texts")
		k.Require(file.name, ext == ".npy" || ext == ".safetensors", "must end in .npy or .safetensors")
		tensor := k.Value(file.name + "_tensor").(string)
		k.Require(file.name+"_tensor", tensor == "" || ext != ".npy", "must be empty for a .npy file",
			"which holds one array")
	}
	for _, name := range []string{"image_labels", "text_labels"} {
		k.Require(name, k.Value(name) != "", "must name a text file with a class on each line")
	}
}

// Place stands in a template where the name of a class is written.
const Place = "{}"

// CheckTemplate says what is wrong with a template of prompts.
func CheckTemplate(t string) error {
	switch n := strings.Count(t, Place); {
	case n == 0:
		return fmt.Errorf("has no place for the name of a class (got %.60q): write {} there", t)
	case n > 1:
		return fmt.Errorf("has %d places for the name of a class (got %.60q): write {} once", n, t)
	}
	return nil
}

// ReadsFiles says whether something is read below data.root.
func (z *Eval) ReadsFiles() bool { return z.Images+z.Classes+z.TemplatesFile != "" }
