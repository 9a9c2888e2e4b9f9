package config

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/config/section"
)

// Image is the image tower: a vision transformer, a residual network, or features of regions.
type Image struct {
	Style         string    `toml:"style" fixed:"meaning"`                                    // structure: empty (that of model.system) | vit (norm of eps 1e-6, GELU: timm's) | deit (vit with eps 1e-12: Hugging Face's ViT and DeiT, whose distillation token is a register) | clip (a norm before the blocks, patches without a bias, eps 1e-5, quick_gelu) | dinov2 (layer scale, eps 1e-6, GELU) | siglip (no class token, attention pooling, eps 1e-6, gelu_tanh) | resnet (a residual network of convolutions, of model.image.resnet) | regions (features of regions in the place of pixels, of model.image.regions)
	Size          int       `toml:"size" read:"pixels" fixed:"model" max:"8192"`              // side of the square input image in pixels, of a vision transformer a multiple of patch
	Patch         int       `toml:"patch" read:"patches" fixed:"model" max:"8192"`            // side of a square patch in pixels
	Depth         int       `toml:"depth" read:"patches" fixed:"model" max:"128"`             // transformer blocks
	Width         int       `toml:"width" read:"other than resnet" fixed:"model" max:"65536"` // width of a token, a multiple of heads; that of a residual network follows from model.image.resnet
	Heads         int       `toml:"heads" read:"patches" fixed:"meaning" max:"1024"`          // attention heads
	MLP           int       `toml:"mlp" read:"patches" fixed:"model" max:"262144"`            // hidden width of a block's MLP; 0: 4 x width, with swiglu two thirds of that, up to a multiple of 8
	Activation    string    `toml:"activation" read:"patches" fixed:"meaning"`                // of a block's MLP: empty (that of style) | gelu | gelu_tanh | quick_gelu | swiglu (a gated MLP)
	Eps           float64   `toml:"eps" read:"patches" fixed:"meaning" max:"0.1"`             // added to the variance in layer norms; 0: that of style, 1e-6 without one, 1e-5 in model.system "clip"
	Pool          string    `toml:"pool" read:"other than resnet" fixed:"meaning"`            // what stands for an image: empty (that of style) | class (the class token) | mean (of the patches; of vit and deit the final norm comes after it, as in timm, of others before) | attention (SigLIP's head: a learned probe attends to the patches); of resnet always the mean of the places of the last layer; of regions mean (empty too) | max (the largest value of each channel) | gpo (the generalised pooling operator of VSE-infinity: learned weights for the sorted values) | esa (external space attention: a mean of each channel under weights of that channel) | gru (the last state of recurrent units over the regions, as in VSRN)
	Registers     int       `toml:"registers" read:"patches" fixed:"model" max:"1024"`        // learned tokens beside the patches that nobody reads (Darcet et al. 2024)
	Mean          []float64 `toml:"mean" read:"pixels" fixed:"meaning"`                       // of the channels R, G, B in [0, 1], by which images are normalised; empty: CLIP's
	Std           []float64 `toml:"std" read:"pixels" fixed:"meaning"`                        // standard deviation of the channels; empty: CLIP's
	Resize        string    `toml:"resize" read:"pixels" fixed:"model"`                       // how an image becomes a square where no random crop is drawn: empty or squash (both sides to size) | crop (the shorter side to size, then the centre)
	Crop          float64   `toml:"crop" read:"pixels" fixed:"model" max:"1"`                 // side of the centre that is cut out of a resized image, by the side that it is resized to: 0.875 resizes to 256 where size is 224 (timm's crop_pct); 0 or 1: nothing is cut off
	Freeze        bool      `toml:"freeze" read:"steps" fixed:"run"`                          // the tower keeps the parameters that it starts with: it has no gradients, optimiser state, twins nor dropout
	KeepPatches   float64   `toml:"keep_patches" read:"patch steps" max:"1"`                  // share of the patches of an image that a training step sees, drawn anew each time (Li et al. 2023, FLIP), 0 or 1: all; the teacher and evaluation see all
	Interpolation string    `toml:"interpolation" read:"pixels" fixed:"model"`                // filter of resizing: empty or bicubic | bilinear

	ResNet  ResNet      `toml:"resnet" read:"resnet"`
	Regions RegionTower `toml:"regions" read:"region tower"`
}

// Styles of model.image and model.text. The empty one is that of the system.
const (
	StyleViT     = "vit"
	StyleDeiT    = "deit"
	StyleCLIP    = "clip"
	StyleDINOv2  = "dinov2"
	StyleSigLIP  = "siglip"
	StyleBERT    = "bert"
	StyleRoBERTa = "roberta"
	StyleMPNet   = "mpnet"
	StyleGRU     = "gru"
	StyleResNet  = "resnet"
	StyleRegions = "regions"
)

func (i *Image) defaults() {
	*i = Image{Size: 256, Patch: 16, Depth: 12, Width: 768, Heads: 12, KeepPatches: 1}
}

// Pooling returns what stands for an image: class, mean or attention, of regions mean, max, gpo, esa or gru.
func (i Image) Pooling() string {
	switch {
	case i.Style == StyleResNet:
		return "mean"
	case i.Pool != "":
		return i.Pool
	case i.Style == StyleSigLIP:
		return "attention"
	case i.Style == StyleRegions:
		return "mean"
	}
	return "class"
}

// Hidden returns the hidden width of a block's MLP, what 0 stands for included.
func (i Image) Hidden() int {
	switch {
	case i.MLP != 0:
		return i.MLP
	case i.Activation == "swiglu":
		return (i.Width*8/3 + 7) / 8 * 8
	}
	return 4 * i.Width
}

func (i *Image) check(k *checker, c *Config) {
	k.OneOfOrEmpty("model.image.style", StyleViT, StyleDeiT, StyleCLIP, StyleDINOv2, StyleSigLIP, StyleResNet, StyleRegions)
	k.Positive("model.image.size", "model.image.width")
	if i.Style == StyleRegions {
		k.OneOfOrEmpty("model.image.pool", "mean", "max", "gpo", "esa", "gru")
		space, err := c.Model.Head.Space()
		k.Require("model.head.topology", err != nil || !space.Tokens, "must be sphere, Ob(n,m) or euclid", "regions have no class tokens, of which Multi(n,m) reads m")
		return
	}
	i.checkPixels(k)
	if i.Style == StyleResNet {
		space, err := c.Model.Head.Space()
		k.Require("model.head.topology", err != nil || !space.Tokens, "must be sphere, Ob(n,m) or euclid", "a residual network has one class token, and Multi(n,m) reads m")
		return
	}
	k.Positive("model.image.patch", "model.image.depth", "model.image.heads")
	k.NotNegative("model.image.mlp", "model.image.registers")
	k.Require("model.image.size", i.Patch <= 0 || i.Size%i.Patch == 0, "must be a multiple of model.image.patch")
	k.Require("model.image.width", i.Heads <= 0 || i.Width%i.Heads == 0, "must be a multiple of model.image.heads")
	k.OneOfOrEmpty("model.image.activation", "gelu", "gelu_tanh", "quick_gelu", "swiglu")
	k.OneOfOrEmpty("model.image.pool", "class", "mean", "attention")
	k.Require("model.image.pool", i.Style != StyleSigLIP || i.Pooling() != "class", "must be mean or attention with model.image.style \"siglip\", which has no class token")
	k.NotNegative("model.image.eps")
	i.checkClasses(k, c)
	k.NotNegative("model.image.keep_patches")
	if i.LeavesPatchesOut() && i.Patch > 0 {
		has := c.Model.traits()
		k.Require("model.image.keep_patches", i.Kept() < i.Patches(), fmt.Sprintf("must leave out at least one of the %d patches of an image, or be 1", i.Patches()), "a share is rounded to whole patches")
		k.Require("model.image.keep_patches", !has.fusion || c.Model.Text.FusionLayers == 0, "must be 1 with fusion layers, which attend to all patches")
		k.Training("model.image.keep_patches", !c.Objective.TCL.Local, "must be 1 with objective.tcl.local, which compares all patches")
		k.Training("model.image.keep_patches", !c.Has(section.AllPatches), "must be 1 with objective.word_patch, token_image, text_swap or captioning, which read all patches")
	}
}

// checkPixels tells how images cannot be resized and normalised.
func (i *Image) checkPixels(k *checker) {
	k.OneOfOrEmpty("model.image.resize", "squash", "crop")
	k.OneOfOrEmpty("model.image.interpolation", "bicubic", "bilinear")
	k.Require("model.image.crop", i.Crop == 0 || i.Crop >= 0.1, "must be 0 or at least 0.1")
	within := func(v float64) bool { return v >= 0 && v <= 1 }
	k.Require("model.image.mean", len(i.Mean) == len(i.Std), "must have as many values as model.image.std", "set both, or none")
	for _, path := range []string{"model.image.mean", "model.image.std"} {
		v := k.Value(path).([]float64)
		k.Require(path, len(v) == 0 || len(v) == 3, "must have three values, of R, G and B, or none")
		k.Require(path, !slices.ContainsFunc(v, func(v float64) bool { return !within(v) }), "must be between 0 and 1", "pixels are in [0, 1] when they are normalised")
	}
	k.Require("model.image.std", !slices.Contains(i.Std, 0), "must be above 0")
}

// Resized returns the side in pixels that an image is resized to before its centre, of Size, is cut out.
func (i Image) Resized() int {
	if i.Crop <= 0 || i.Crop >= 1 {
		return i.Size
	}
	return int(float64(i.Size) / i.Crop * (1 + 1e-15)) // 224/(224/257) is 257
}

// Transforms says whether the tower is a vision transformer.
func (i Image) Transforms() bool { return i.Style != StyleRegions && i.Style != StyleResNet }

// TokenWidth returns the channels of a token.
func (i Image) TokenWidth() int {
	if i.Style == StyleResNet {
		return i.ResNet.channels()
	}
	return i.Width
}

// Grid returns the side of the square of patches of an image, or of the places of the last layer of a residual network: 7 of an
// image of 224 x 224.
func (i Image) Grid() int {
	if i.Style != StyleResNet {
		return i.Size / i.Patch
	}
	side := i.Size
	for s := i.ResNet.stride(); s > 1; s /= 2 {
		side = (side + 1) / 2
	}
	return side
}

// Patches returns the number of patches or places of an image.
func (i Image) Patches() int { return i.Grid() * i.Grid() }

// LeavesPatchesOut says whether a training step sees a share of the patches of an image.
func (i Image) LeavesPatchesOut() bool {
	return i.Transforms() && i.KeepPatches > 0 && i.KeepPatches < 1
}

// Kept returns the number of patches of an image that a training step sees.
func (i Image) Kept() int {
	if !i.LeavesPatchesOut() {
		return i.Patches()
	}
	return max(1, int(math.Round(i.KeepPatches*float64(i.Patches()))))
}

// checkClasses tells several class tokens that a tower has not.
func (i *Image) checkClasses(k *checker, c *Config) {
	if space, err := c.Model.Head.Space(); err != nil || !space.Tokens || !c.Model.traits().tokens {
		return
	}
	const cure = "Multi(n,m) reads m class tokens: choose another model.head.topology"
	k.Require("model.image.style", i.Style != StyleSigLIP, "must have class tokens", cure)
	k.Require("model.image.pool", i.Pooling() == "class" || i.Style == StyleSigLIP, "must be class with several class tokens", cure)
}
