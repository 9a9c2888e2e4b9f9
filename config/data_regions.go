package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// Regions names the files of data.kind = "regions": images as features of their regions, with captions. {split} in
// a name of a file stands for the name of the split; paths start from data.root.
type Regions struct {
	Source      string  `toml:"source"`                                         // files | scenes (the built-in pictures of [data.scenes], whose objects are the regions)
	Train       string  `toml:"train" read:"region files"`                      // name of the training split in names of files, {split}
	Val         string  `toml:"val" read:"region files"`                        // likewise of the validation split; empty: none
	Test        string  `toml:"test" read:"region files"`                       // likewise of the test split; empty: none
	Features    string  `toml:"features" read:"region files"`                   // file of the features: .npy, .npz, .pt or .safetensors of an array (images, regions, features), .safetensors of a tensor for each image, .tsv of bottom-up attention
	Tensor      string  `toml:"tensor" read:"region files"`                     // name of the array in its file; empty: its only one, in .safetensors "features"
	Boxes       string  `toml:"boxes" read:"region files"`                      // file of an array (images, regions, 4) of left, top, right, bottom as shares of the image; empty: none, or those that the file of the features has
	Captions    string  `toml:"captions" read:"region files"`                   // text file of the captions, one a line: as many as images or a whole multiple, those of an image together
	CaptionForm string  `toml:"caption_form" read:"region files"`               // text | words (a line is words with commas or blanks between them, as in precaps.txt)
	IDs         string  `toml:"ids" read:"region files"`                        // text file of the ids, one a line for each image or each caption, which is read if it is there: images of one id are right answers for each other; empty: none
	Mapping     string  `toml:"mapping" read:"region files"`                    // id_mapping.json: names of the files of images by id; empty: none
	Pictures    string  `toml:"pictures" read:"region files"`                   // folder of these files, to show them; empty: none
	Repeated    string  `toml:"repeated" read:"region files"`                   // where there are as many captions as images, every image is there five times, once for each caption: auto (by ids, else by the first rows) | yes | no
	ValCaptions int     `toml:"val_captions" read:"region files" max:"1000000"` // captions of the validation split that are used, the first ones: 5000 as older programs do; 0: all
	Most        int     `toml:"most" max:"65536"`                               // regions of an image that are read, the first ones; 0: as many as an image of any split has, a number that a run with model.image.style "regions" writes down
	Width       int     `toml:"width" read:"region scenes" max:"65536"`         // features of a region of a scene
	Noise       float64 `toml:"noise" read:"region scenes" max:"1000"`          // standard deviation of the noise of these features, which are about 1
}

// Values of data.regions.source and caption_form.
const (
	RegionsOfFiles  = "files"
	RegionsOfScenes = "scenes"
	CaptionText     = "text"
	CaptionWords    = "words"
)

func (r *Regions) defaults() {
	*r = Regions{
		Source: RegionsOfFiles, Train: "train", Val: "dev", Test: "test", Features: "{split}_ims.npy", Captions: "{split}_caps.txt",
		CaptionForm: CaptionText, IDs: "{split}_ids.txt", Repeated: "auto", Width: 64, Noise: 0.1,
	}
}

func (r *Regions) check(k *checker, c *Config) {
	k.OneOf("data.regions.source", RegionsOfFiles, RegionsOfScenes)
	k.OneOf("data.regions.caption_form", CaptionText, CaptionWords)
	k.OneOf("data.regions.repeated", "auto", "yes", "no")
	k.NotNegative("data.regions.val_captions", "data.regions.most", "data.regions.noise")
	k.Positive("data.regions.width")
	if c.Data.Kind != "regions" {
		return
	}
	k.Require("data.kind", !c.Model.traits().stored, `must not be "regions"`, c.Model.named()+` reads a row of features for each image: use "pairs"`)
	if r.Source != RegionsOfFiles {
		return
	}
	ext := strings.ToLower(filepath.Ext(r.Features))
	k.Require("data.regions.features", slices.Contains([]string{".npy", ".npz", ".pt", ".pth", ".safetensors", ".tsv"}, ext), "must end in .npy, .npz, .pt, .pth, .safetensors or .tsv")
	k.Require("data.regions.boxes", r.Boxes == "" || ext != ".tsv", "must be empty for a .tsv file", "which has boxes")
	k.Require("data.regions.captions", r.Captions != "", "must name a file")
	k.Require("data.regions.tensor", r.Tensor == "" || ext != ".npy" && ext != ".tsv", "must be empty for a "+ext+" file", "which has no names")
	k.Training("data.regions.train", r.Train != "", `must name the split for data.kind "regions"`)
	if c.Train.EvalEverySteps > 0 && (c.Eval.Split == "val" || c.Eval.Split == "test") {
		k.Training("data.regions."+c.Eval.Split, r.Split(c.Eval.Split) != "", "must name the split", "or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the name of a split (train, val or test) in names of files, empty for none.
func (r Regions) Split(name string) string { return filesOf(name, r.Train, r.Val, r.Test) }

// File puts the name of a split into the name of a file.
func (r Regions) File(file, split string) string {
	return strings.ReplaceAll(file, "{split}", r.Split(split))
}

// Drawn says whether the data is the built-in scenes, which are drawn and whose training split has no end.
func (d Data) Drawn() bool {
	return d.Kind == "scenes" || d.Kind == "regions" && d.Regions.Source == RegionsOfScenes || d.ReadsExamples() && d.Examples.Source == ExamplesOfScenes
}
