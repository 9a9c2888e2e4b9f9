package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
)

// Init says what the parameters start from.
type Init struct {
	// checkpoint or run folder whose parameters are the start; empty: random
	Checkpoint string `toml:"checkpoint" fixed:"run"`
	// most words of the training texts that the vocabulary of the checkpoint takes in: the commonest of those that it
	// does not know or cuts into more than two tokens; their embeddings start from random numbers
	NewWords int       `toml:"new_words" fixed:"run" when:"checkpoint and words" max:"100000"`
	Image    InitImage `toml:"image" when:"images"`
	Text     InitText  `toml:"text" when:"words"`
}

// Check implements section.Checked.
func (i *Init) Check(k *section.Checker) {
	c := section.Of[Config](k)
	k.Require("checkpoint", i.Checkpoint == "" || !c.Has(section.Fitted), "must be empty",
		k.Named()+" is fitted to the training pairs anew and starts from no parameters")
	k.Require("new_words", i.NewWords >= 0, "must be >= 0")
	for _, path := range []string{"init.image.path", "init.text.path"} {
		k.Require(path, i.Checkpoint == "" || k.Value(path) == "", "must be empty with init.checkpoint",
			"parameters start from one of the two")
	}
}

// Random says whether all parameters start from random numbers.
func (i Init) Random() bool { return i.Checkpoint == "" && i.Image.Path == "" && i.Text.Path == "" }

// Towers returns the paths of the weights that the towers of the system start from, empty for a tower that it lacks.
func (c *Config) Towers() (image, text string) {
	if c.Has(section.Images) {
		image = c.Init.Image.Path
	}
	if c.Has(section.Words) {
		text = c.Init.Text.Path
	}
	return image, text
}

// InitImage is what the image tower starts from, and how fast it learns. docs/families.md lists the files that are read.
type InitImage struct {
	// file or folder with weights of another program, such as a model of Hugging Face; empty: those of
	// init.checkpoint, or random
	Path string `toml:"path" fixed:"run"`
	// family of the file, such as vit, timm or clip; empty: the one that it looks like
	Family string `toml:"family" when:"path"`
	// parameters of the tower that the file should have and lacks start from random numbers; else they are an error
	AllowMissing bool `toml:"allow_missing" when:"path"`
	// the tower learns with this times the learning rate
	LRFactor float64 `toml:"lr_factor" when:"model.image.freeze=false" max:"1000"`
	// a block learns with this times the rate of the block above it, the embeddings with this times that of the first
	// block (Bao et al. 2022, BEiT); 1: all alike
	LayerDecay float64 `toml:"layer_decay" when:"model.image.freeze=false"`
}

// Defaults implements section.Defaulter.
func (i *InitImage) Defaults() { *i = InitImage{LRFactor: 1, LayerDecay: 1} }

// Check implements section.Checked.
func (i *InitImage) Check(k *section.Checker) {
	c := section.Of[Config](k)
	checkRate(k)
	k.Training("layer_decay", c.Has(section.Stored) || c.Model.Image.Transforms() || i.LayerDecay == 1,
		fmt.Sprintf("must be 1 with model.image.style %q", c.Model.Image.Style),
		"such a tower has no blocks: init.image.lr_factor is the rate of all of it")
}

// InitText is what the text tower starts from, and how fast it learns. Fusion layers take self-attention and
// feed-forward parts of the layers of a file that follow those of the tower.
type InitText struct {
	// as init.image.path
	Path string `toml:"path" fixed:"run"`
	// family of the file, such as bert, roberta or clip; empty: the one that it looks like
	Family string `toml:"family" when:"path"`
	// as init.image.allow_missing
	AllowMissing bool `toml:"allow_missing" when:"path"`
	// as init.image.lr_factor; fusion layers are of the tower, but their cross-attention and the head of masked
	// language modelling learn with the whole rate
	LRFactor float64 `toml:"lr_factor" when:"text learns" max:"1000"`
	// as init.image.layer_decay, the layers of the tower and the fusion layers counted together
	LayerDecay float64 `toml:"layer_decay" when:"text learns"`
}

// Defaults implements section.Defaulter.
func (i *InitText) Defaults() { *i = InitText{LRFactor: 1, LayerDecay: 1} }

// Check implements section.Checked.
func (i *InitText) Check(k *section.Checker) {
	checkRate(k)
}

// checkRate checks the keys by which a tower learns.
func checkRate(k *section.Checker) {
	k.Positive("lr_factor", "layer_decay")
	k.Require("layer_decay", k.Number("layer_decay") <= 1, "must be at most 1",
		"a block learns no faster than the one above it")
}
