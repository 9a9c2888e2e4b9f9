package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// Pairs names the stored features of data.kind = "pairs" and says which rows belong together.
// Paths start from data.root.
type Pairs struct {
	Image       string `toml:"image"`                          // file of the image features, a matrix with a row per image: .npy, .npz, .safetensors, .pt, .parquet, or a folder of .pt files of a row or rows each; the last two are copied to data.cache_dir
	Text        string `toml:"text"`                           // file of the text features, a row per text
	ImageTensor string `toml:"image_tensor"`                   // name of the tensor, or column, of the image features in their file; empty: its only one
	TextTensor  string `toml:"text_tensor"`                    // likewise of the text features
	ImagePool   string `toml:"image_pool"`                     // file of further image features of the same width, none of which is in a pair; empty: none
	TextPool    string `toml:"text_pool"`                      // likewise of text features
	Index       string `toml:"index"`                          // table of the pairs: .tsv or .csv with the columns image_row, text_row and, if wanted, split, or .npy of <i4 or <i8 (pairs, 2); empty: row i of one file belongs to row i of the other
	ValSamples  int    `toml:"val_samples" max:"1000000000"`   // images of the validation split, unless data.pairs.index names the splits
	TestSamples int    `toml:"test_samples" max:"1000000000"`  // images of the test split, likewise
	Hold        string `toml:"hold"`                           // images of these splits: random (drawn by seed) | last (those in the last rows: test the end, val before them)
	Seed        uint64 `toml:"seed" max:"9223372036854775807"` // draws the splits with hold = "random"; 0: run.seed
	Paired      int    `toml:"paired" max:"1000000000"`        // training pairs that may be used as pairs, drawn by run.seed; the other rows of training are unpaired; 0: all
}

func (p *Pairs) defaults() { *p = Pairs{ValSamples: 1000, TestSamples: 1000, Hold: "random"} }

func (p *Pairs) check(k *checker, c *Config) {
	k.NotNegative("data.pairs.val_samples", "data.pairs.test_samples", "data.pairs.paired")
	k.OneOf("data.pairs.hold", "random", "last")
	if c.Data.Kind != "pairs" {
		return
	}
	k.Require("data.kind", c.Model.traits().stored, `must not be "pairs"`, c.Model.named()+" reads images: stored features are for model.system \"heads\" and \"align\"")
	for _, side := range []struct{ name, file, pool, tensor string }{{"image", p.Image, p.ImagePool, p.ImageTensor}, {"text", p.Text, p.TextPool, p.TextTensor}} {
		path := "data.pairs." + side.name
		k.Require(path, side.file != "", `must name a file of features for data.kind "pairs"`)
		for _, x := range []struct{ path, file string }{{path, side.file}, {path + "_pool", side.pool}} {
			k.Require(x.path, x.file == "" || holdsFeatures(x.file), "must end in .npy, .npz, .safetensors, .pt, .pth or .parquet", "or name a folder of .pt files; one whose name has a dot needs a / at its end")
			k.Require("data.cache_dir", c.Data.CacheDir != "" || x.file == "" || !holdsFeatures(x.file) || !copied(x.file), "must name a folder for a copy of "+x.path, "which is converted once: only files of .npy, .npz, .safetensors and .pt are read in place")
		}
		k.Require(path+"_tensor", side.tensor == "" || strings.ToLower(filepath.Ext(side.file)) != ".npy", "must be empty for a .npy file", "which holds one array")
	}
	ext := strings.ToLower(filepath.Ext(p.Index))
	k.Require("data.pairs.index", p.Index == "" || slices.Contains([]string{".tsv", ".csv", ".npy"}, ext), "must end in .tsv, .csv or .npy")
	mayName := p.Index != "" && ext != ".npy" // the splits
	if !mayName && c.Train.EvalEverySteps > 0 && (c.Eval.Split == "val" || c.Eval.Split == "test") {
		path := "data.pairs." + c.Eval.Split + "_samples"
		k.Training(path, k.Number(path) > 0, "must be > 0", "or set eval.split or train.eval_every_steps = 0")
	}
}

// featureFiles are the ends of names of files of features.
var featureFiles = []string{".npy", ".npz", ".safetensors", ".pt", ".pth", ".parquet"}

// holdsFeatures says whether a name is that of a file or folder of features.
func holdsFeatures(file string) bool {
	return FeatureFolder(file) || slices.Contains(featureFiles, strings.ToLower(filepath.Ext(file)))
}

// copied says whether features are read by way of a copy.
func copied(file string) bool {
	return FeatureFolder(file) || strings.EqualFold(filepath.Ext(file), ".parquet")
}

// FeatureFolder says whether a path of [data.pairs] names a folder: its name has no end such as .npy, or
// a slash behind.
func FeatureFolder(path string) bool {
	return path != "" && (filepath.Ext(path) == "" || strings.HasSuffix(path, "/"))
}
