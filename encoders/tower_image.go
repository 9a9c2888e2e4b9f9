package encoders

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/space"
)

// ImageOptions is the image tower: a vision transformer, a residual network, or features of regions.
type ImageOptions struct {
	// structure: empty (that of model.system) | vit (norm of eps 1e-6, GELU: timm's) | deit (vit with eps 1e-12:
	// Hugging Face's ViT and DeiT, whose distillation token is a register) | clip (a norm before the blocks, patches
	// without a bias, eps 1e-5, quick_gelu) | dinov2 (layer scale, eps 1e-6, GELU) | siglip (no class token, attention
	// pooling, eps 1e-6, gelu_tanh) | block (a vision transformer by the options of model.image.block, eps 1e-6, GELU) |
	// resnet (a residual network of convolutions, of model.image.resnet) | convnet
	// (another network of convolutions, of model.image.convnet) | regions
	// (features of regions in the place of pixels, of model.image.regions)
	Style string `toml:"style" fixed:"meaning"`
	// side of the square input image in pixels, of a vision transformer a multiple of patch
	Size int `toml:"size" when:"style!=regions" fixed:"model" max:"8192"`
	// side of a square patch in pixels
	Patch int `toml:"patch" when:"style!=regions|resnet|convnet" fixed:"model" max:"8192"`
	// transformer blocks
	Depth int `toml:"depth" when:"style!=regions|resnet|convnet" fixed:"model" max:"128"`
	// width of a token, a multiple of heads; that of a residual network follows from model.image.resnet
	Width int `toml:"width" when:"style!=resnet|convnet" fixed:"model" max:"65536"`
	// attention heads
	Heads int `toml:"heads" when:"style!=regions|resnet|convnet" fixed:"meaning" max:"1024"`
	// hidden width of a block's MLP; 0: 4 x width, with swiglu two thirds of that, up to a multiple of 8
	MLP int `toml:"mlp" when:"style!=regions|resnet|convnet" fixed:"model" max:"262144"`
	// of a block's MLP: empty (that of style) | gelu | gelu_tanh | quick_gelu | swiglu (a gated MLP); in style block also
	// silu | relu, and block.gated in the place of swiglu
	Activation string `toml:"activation" when:"style!=regions|resnet|convnet" fixed:"meaning"`
	// added to the variance in layer norms; 0: that of style, 1e-6 without one, 1e-5 in model.system "clip"
	Eps float64 `toml:"eps" when:"style!=regions|resnet|convnet" fixed:"meaning" max:"0.1"`
	// what stands for an image: empty (that of style) | class (the class token) | mean (of the patches; of vit and
	// deit the final norm comes after it, as in timm, of others before) | attention (SigLIP's head: a learned probe
	// attends to the patches); of resnet always the mean of the places of the last layer; of regions mean (empty too)
	// | max (the largest value of each channel) | gpo (the generalised pooling operator of VSE-infinity: learned
	// weights for the sorted values) | esa (external space attention: a mean of each channel under weights of that
	// channel) | gru (the last state of recurrent units over the regions, as in VSRN)
	Pool string `toml:"pool" when:"style!=resnet|convnet" fixed:"meaning"`
	// learned tokens beside the patches that nobody reads (Darcet et al. 2024)
	Registers int `toml:"registers" when:"style!=regions|resnet|convnet" fixed:"model" max:"1024"`
	// of the channels R, G, B in [0, 1], by which images are normalised; empty: CLIP's
	Mean []float64 `toml:"mean" when:"style!=regions" fixed:"meaning"`
	// standard deviation of the channels; empty: CLIP's
	Std []float64 `toml:"std" when:"style!=regions" fixed:"meaning"`
	// how an image becomes a square where no random crop is drawn: empty or squash (both sides to size) | crop (the
	// shorter side to size, then the centre)
	Resize string `toml:"resize" when:"style!=regions" fixed:"model"`
	// side of the centre that is cut out of a resized image, by the side that it is resized to: 0.875 resizes to 256
	// where size is 224 (timm's crop_pct); 0 or 1: nothing is cut off
	Crop float64 `toml:"crop" when:"style!=regions" fixed:"model" max:"1"`
	// where the centre begins if the pixels beside it are an odd number: empty (at the even one of the two in the middle, as
	// in torchvision) | down (at the first of them, as in Hugging Face)
	Centre string `toml:"centre" when:"style!=regions" fixed:"model"`
	// the tower keeps the parameters that it starts with: it has no gradients, optimiser state, twins nor dropout
	Freeze bool `toml:"freeze" when:"steps" fixed:"run"`
	// share of the patches of an image that a training step sees, drawn anew each time (Li et al. 2023, FLIP), 0 or 1:
	// all; the teacher and evaluation see all
	KeepPatches float64 `toml:"keep_patches" when:"style!=regions|resnet|convnet" max:"1"`
	// filter of resizing: empty or bicubic | bilinear
	Interpolation string `toml:"interpolation" when:"style!=regions" fixed:"model"`

	Block   ImageBlock  `toml:"block" when:"style=block"`
	ResNet  ResNet      `toml:"resnet" when:"style=resnet"`
	ConvNet ConvNet     `toml:"convnet" when:"style=convnet"`
	Regions RegionTower `toml:"regions" when:"style=regions"`
}

// Styles of towers. The empty one is that of the system.
const (
	StyleViT     = "vit"
	StyleDeiT    = "deit"
	StyleCLIP    = "clip"
	StyleDINOv2  = "dinov2"
	StyleSigLIP  = "siglip"
	StyleCoCa    = "coca"
	StyleBERT    = "bert"
	StyleRoBERTa = "roberta"
	StyleMPNet   = "mpnet"
	StyleGRU     = "gru"
	StyleBlock   = "block"
	StyleResNet  = "resnet"
	StyleConvNet = "convnet"
	StyleRegions = "regions"
)

// Defaults implements section.Defaulter.
func (i *ImageOptions) Defaults() {
	*i = ImageOptions{Size: 256, Patch: 16, Depth: 12, Width: 768, Heads: 12, KeepPatches: 1}
}

// Gives implements section.Giver.
func (i *ImageOptions) Gives() []section.Fact {
	switch r := i.ResNet; {
	case i.Style == StyleRegions && i.Regions.normed() && !i.Freeze:
		return []section.Fact{section.Regions, section.RegionNorms}
	case i.Style == StyleRegions:
		return []section.Fact{section.Regions}
	case i.Style == StyleResNet && !i.Freeze && !r.FrozenNorm && r.FrozenStages < 5:
		return []section.Fact{section.Pixels, section.Convolutions, section.BatchNorms}
	case i.Style == StyleConvNet && !i.Freeze && i.ConvNet.batchNorms():
		return []section.Fact{section.Pixels, section.Convolutions, section.BatchNorms}
	case i.Style == StyleResNet || i.Style == StyleConvNet:
		return []section.Fact{section.Pixels, section.Convolutions}
	}
	return []section.Fact{section.Pixels, section.Patches}
}

// Check implements section.Checked.
func (i *ImageOptions) Check(k *section.Checker) {
	k.OneOfOrEmpty("style", StyleViT, StyleDeiT, StyleCLIP, StyleDINOv2, StyleSigLIP, StyleBlock, StyleResNet,
		StyleConvNet, StyleRegions)
	k.Positive("size", "width")
	space, err := section.Of[HeadOptions](k).Space()
	several := err == nil && space.Tokens
	if i.Style == StyleRegions {
		k.OneOfOrEmpty("pool", "mean", "max", "gpo", "esa", "gru")
		k.Require("model.head.topology", !several, "must be sphere, Ob(n,m) or euclid",
			"regions have no class tokens, of which Multi(n,m) reads m")
		return
	}
	i.checkPixels(k)
	if i.Style == StyleResNet || i.Style == StyleConvNet {
		k.Require("model.head.topology", !several, "must be sphere, Ob(n,m) or euclid",
			"a network of convolutions has one class token, and Multi(n,m) reads m")
		return
	}
	k.Positive("patch", "depth", "heads")
	k.NotNegative("mlp", "registers")
	k.Require("size", i.Patch <= 0 || i.Size%i.Patch == 0, "must be a multiple of model.image.patch")
	k.Require("width", i.Heads <= 0 || i.Width%i.Heads == 0, "must be a multiple of model.image.heads")
	if i.Style == StyleBlock {
		k.OneOfOrEmpty("activation", "gelu", "gelu_tanh", "quick_gelu", "silu", "relu")
		k.Require("activation", i.Activation != "relu" || !i.Block.Gated, "must not be relu with model.image.block.gated")
	} else {
		k.OneOfOrEmpty("activation", "gelu", "gelu_tanh", "quick_gelu", "swiglu")
	}
	k.OneOfOrEmpty("pool", "class", "mean", "attention")
	k.Require("pool", i.Style != StyleSigLIP || i.Pooling() != "class",
		"must be mean or attention with model.image.style \"siglip\", which has no class token")
	k.NotNegative("eps")
	if several && k.Has(section.Tokens) {
		k.Require("style", i.Style != StyleSigLIP && (i.Style != StyleBlock || i.Block.ClassToken), "must have class tokens",
			oneClassCure)
		k.Require("pool", i.Pooling() == "class" || i.Style == StyleSigLIP,
			"must be class with several class tokens", oneClassCure)
	}
	k.NotNegative("keep_patches")
	if i.LeavesPatchesOut() && i.Patch > 0 {
		k.Require("keep_patches", i.Kept() < i.Patches(),
			fmt.Sprintf("must leave out at least one of the %d patches of an image, or be 1", i.Patches()),
			"a share is rounded to whole patches")
		k.Require("keep_patches", i.Style != StyleBlock || i.Block.Rotary == "" && !i.Block.Relative,
			"must be 1 with model.image.block.rotary or relative, which need all patches of the grid")
		k.Require("keep_patches", !k.Has(section.Fusion) || section.Of[TextOptions](k).FusionLayers == 0,
			"must be 1 with fusion layers, which attend to all patches")
		k.Training("keep_patches", k.Value("objective.tcl.local") != true,
			"must be 1 with objective.tcl.local, which compares all patches")
		k.Training("keep_patches", !k.Has(section.AllPatches),
			"must be 1 with objective.word_patch, token_image, text_swap or captioning, which read all patches")
	}
}

// oneClassCure is what is done about a tower of one class token where there are several.
const oneClassCure = "Multi(n,m) reads m class tokens: choose another model.head.topology"

// checkPixels tells how images cannot be resized and normalised.
func (i *ImageOptions) checkPixels(k *section.Checker) {
	k.OneOfOrEmpty("resize", "squash", "crop")
	k.OneOfOrEmpty("centre", "down")
	k.OneOfOrEmpty("interpolation", "bicubic", "bilinear")
	k.Require("crop", i.Crop == 0 || i.Crop >= 0.1, "must be 0 or at least 0.1")
	k.Require("mean", len(i.Mean) == len(i.Std), "must have as many values as model.image.std", "set both, or none")
	for _, key := range []string{"mean", "std"} {
		values := k.Value(key).([]float64)
		k.Require(key, len(values) == 0 || len(values) == 3, "must have three values, of R, G and B, or none")
		k.Require(key, !slices.ContainsFunc(values, func(v float64) bool { return !(v >= 0 && v <= 1) }),
			"must be between 0 and 1", "pixels are in [0, 1] when they are normalised")
	}
	k.Require("std", !slices.Contains(i.Std, 0), "must be above 0")
}

// TowerArgs are what a tower is built into.
type TowerArgs struct {
	System      string // model.system, whose structure an empty style is
	Space       space.Space
	TokenBlocks int // see ViT
	Metric      AttentionMetric
	Regions     int // most regions of an image

	Tokens          int // places of a text
	Vocab           int
	Pad, Begin, End int // tokens of padding, and around the words of a text
}

// Tower returns the tower of a style.
func (i ImageOptions) Tower(a TowerArgs) Tower {
	switch i.Style {
	case StyleRegions:
		t := i.Regions
		t.Regions, t.Width, t.Pool = a.Regions, i.Width, Pool(i.Pooling())
		return t
	case StyleResNet:
		return ResNetTower{i.Network()}
	case StyleConvNet:
		return ConvNetTower{i.convNet()}
	}
	v := ViT{ImageOptions: i, Classes: a.Space.Classes(), TokenBlocks: a.TokenBlocks, TorchStart: a.System == "clip",
		Metric: a.Metric.at(AttendImage)}
	v.Pool, v.Eps = i.Pooling(), i.LayerNormEps(a.System)
	v.NormFirst = !slices.Contains([]string{StyleViT, StyleDeiT, ""}, i.Style)
	v.NoPatchBias = i.Style == StyleCLIP || i.Style == "" && v.TorchStart // clip-mtob's
	v.PreNorm, v.LayerScale, v.NoClass = v.NoPatchBias, i.Style == StyleDINOv2, i.Style == StyleSigLIP
	if b := i.Block; i.Style == StyleBlock {
		v.NoPatchBias, v.PreNorm, v.LayerScale, v.NoClass = !b.PatchBias, b.FirstNorm, b.LayerScale, !b.ClassToken
	}
	v.Activation = StyleActivation(i.Style, i.Activation)
	return ImageTower{v}
}

// StyleActivation returns the activation of a tower, what the empty one stands for included.
func StyleActivation(style, activation string) string {
	switch {
	case activation != "":
		return activation
	case style == StyleCLIP:
		return "quick_gelu"
	case style == StyleSigLIP:
		return "gelu_tanh"
	}
	return "gelu"
}

// Network returns the residual network of the style.
func (i ImageOptions) Network() ResNet {
	r := i.ResNet
	r.Size = i.Size
	return r
}

// convNet returns the network of convolutions of the style.
func (i ImageOptions) convNet() ConvNet {
	n := i.ConvNet
	n.Size = i.Size
	return n
}

// Widest returns the values of an image in the largest layer of a network of convolutions.
func (i ImageOptions) Widest() float64 {
	if i.Style == StyleConvNet {
		_, _, widest := i.convNet().Sizes()
		return widest
	}
	return i.Network().Widest()
}

// KeptValues counts the values of an image that the backward pass of a network of convolutions reads.
func (i ImageOptions) KeptValues() (kept int64) {
	if i.Style == StyleConvNet {
		_, kept, _ = i.convNet().Sizes()
		return kept
	}
	_, _, kept = i.Network().Sizes()
	return kept
}

// Pooling returns what stands for an image: class, mean or attention, of regions mean, max, gpo, esa or gru.
func (i ImageOptions) Pooling() string {
	switch {
	case i.Style == StyleResNet || i.Style == StyleConvNet:
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

// LayerNormEps returns the epsilon of the layer norms in a system, what 0 stands for included.
func (i ImageOptions) LayerNormEps(system string) float64 {
	switch {
	case i.Eps != 0:
		return i.Eps
	case i.Style == StyleDeiT:
		return bertEps
	case i.Style == StyleCLIP, i.Style == "" && system == "clip": // clip-mtob's
		return torchEps
	}
	return vitEps
}

// torchEps is the epsilon of PyTorch's layer norms, which CLIP and RoBERTa leave as it is.
const torchEps = 1e-5

// Hidden returns the hidden width of a block's MLP, what 0 stands for included.
func (i ImageOptions) Hidden() int {
	switch {
	case i.MLP != 0:
		return i.MLP
	case i.Activation == SwiGLU:
		return (i.Width*8/3 + 7) / 8 * 8
	}
	return 4 * i.Width
}

// Weights counts the weights of the matrices of the tower.
func (i ImageOptions) Weights() int64 {
	switch i.Style {
	case StyleRegions:
		return i.regionWeights()
	case StyleResNet:
		n, _, _ := i.Network().Sizes()
		return n
	case StyleConvNet:
		n, _, _ := i.convNet().Sizes()
		return n
	}
	first := i.Hidden()
	if i.Activation == SwiGLU || i.Style == StyleBlock && i.Block.Gated {
		first *= 2
	}
	w := int64(i.Width)
	return w*(4*w+int64(first)+int64(i.Hidden()))*int64(i.Depth) +
		(3*int64(i.Patch)*int64(i.Patch)+int64(i.Patches()))*w
}

// Resized returns the side in pixels that an image is resized to before its centre, of Size, is cut out.
func (i ImageOptions) Resized() int {
	if i.Crop <= 0 || i.Crop >= 1 {
		return i.Size
	}
	return int(float64(i.Size) / i.Crop * (1 + 1e-15)) // 224/(224/257) is 257
}

// Transforms says whether the tower is a vision transformer.
func (i ImageOptions) Transforms() bool {
	return i.Style != StyleRegions && i.Style != StyleResNet && i.Style != StyleConvNet
}

// TokenWidth returns the channels of a token.
func (i ImageOptions) TokenWidth() int {
	if i.Style == StyleResNet {
		return i.ResNet.Channels()
	}
	if i.Style == StyleConvNet {
		return i.ConvNet.Width()
	}
	if i.Style == StyleBlock && i.Pool == PoolAttention {
		return defaultTo(i.Block.PoolWidth, i.Width)
	}
	return i.Width
}

// Grid returns the side of the square of patches of an image, or of the places of the last layer of a residual
// network: 7 of an image of 224 x 224.
func (i ImageOptions) Grid() int {
	if i.Style == StyleResNet {
		r := i.Network()
		return r.side(r.stemHalvings() + 3)
	}
	if i.Style == StyleConvNet {
		return i.convNet().side()
	}
	if i.Patch < 1 {
		return 0
	}
	return i.Size / i.Patch
}

// Patches returns the number of patches or places of an image.
func (i ImageOptions) Patches() int { return i.Grid() * i.Grid() }

// LeavesPatchesOut says whether a training step sees a share of the patches of an image.
func (i ImageOptions) LeavesPatchesOut() bool {
	return i.Transforms() && i.KeepPatches > 0 && i.KeepPatches < 1
}

// Kept returns the number of patches of an image that a training step sees.
func (i ImageOptions) Kept() int {
	if !i.LeavesPatchesOut() {
		return i.Patches()
	}
	return max(1, int(math.Round(i.KeepPatches*float64(i.Patches()))))
}

// ImageTower is a vision transformer as a tower.
type ImageTower struct{ ViT }

var _ Tower = ImageTower{}

// Columns is the image, (3, S, S).
func (t ImageTower) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, t.Size, t.Size}}}
}

// Classes returns m.
func (t ImageTower) Classes() int { return t.classes() }

// Shape returns the tokens of a row and their width.
func (t ImageTower) Shape() (length, width int) { return t.ViT.Tokens(), t.TokenWidth() }

// Encode encodes images (R, 3, S, S). Without tokens the last block computes no query but
// those of the class tokens.
func (t ImageTower) Encode(c *Context, s Scope, in Inputs, want Want) Sequence {
	images := in[batch.Images]
	q, v := Sequence{Len: t.Tokens(), Width: t.TokenWidth(), Begin: t.Tokens() - t.Patches()}, t.keeping(c, images.Shape()[0])
	if want.Tokens {
		q.Tokens, q.Classes = v.Encode(s, images)
	} else {
		q.Classes = v.Class(s, images)
	}
	return q
}
