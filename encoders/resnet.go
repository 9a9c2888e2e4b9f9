package encoders

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/conv"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// ResNet is a residual network of convolutions (He et al. 2016) as torchvision has it: a stem and four stages of
// blocks.
//
// A block is the sum of its input and of two convolutions of 3 x 3, or in a bottleneck of 1 x 1, 3 x 3 and 1 x 1,
// each followed by a batch norm and, but for the last before the sum, by ReLU; ReLU follows the sum. The first block
// of the stages 2 to 4 moves its first convolution of 3 x 3 by two places at a time (version 1.5 of the bottleneck),
// and where a block changes the shape its input passes a convolution of 1 x 1 and a batch norm.
//
// Parameters are those of torchvision: conv1, bn1, layer1/00/conv1, layer1/00/downsample/0 and so on.
type ResNet struct {
	// layers: 18 or 34 (basic blocks, 8 x width channels come out) | 50 or 101 (bottlenecks, 32 x width channels come
	// out)
	Depth int `toml:"depth" fixed:"model" max:"101"`
	// channels of the stem and of the first stage, which double from stage to stage: 64 is that of the published
	// networks
	Width int `toml:"width" fixed:"model" max:"1024"`
	// the stem of small images: a convolution of 3 x 3 with stride 1 and no pooling, so that an image is 8 times as
	// wide as the last layer; else 7 x 7 with stride 2 and pooling, and 32 times
	SmallStem bool `toml:"small_stem" fixed:"model"`
	// so many of the first parts stay as they start, the stem counted as one and then the four stages, with batch
	// norms as in inference: 5 - n of torchvision's trainable layers, mmdetection's frozen_stages + 1; 0: none
	FrozenStages int `toml:"frozen_stages" when:"model.image.freeze=false" fixed:"run" max:"5"`
	// all batch norms are as in inference and keep the weights, biases and running statistics that they start with, as
	// torchvision's FrozenBatchNorm2d
	FrozenNorm bool `toml:"frozen_norm" when:"model.image.freeze=false" fixed:"run"`
	// what batch norms of the momentum twin normalise by: batch (the statistics of its own batch, as in MoCo) |
	// running (as in inference: the twin of the running statistics, for towers that start from stored weights)
	TeacherNorm string `toml:"teacher_norm" when:"batch norms and momentum.enabled and teacher features"`
	// a batch norm takes its statistics from each of so many groups of the batch by itself, the twin's from groups of
	// shuffled images (shuffling BN of MoCo); a divisor of train.batch_size and a multiple of the processes that train
	// together; 0 or 1: from the whole batch
	ShuffleGroups int `toml:"shuffle_groups" when:"batch norms" max:"1024"`
	// the last batch norm of a block starts with weight 0, so that a block starts as the identity (Goyal et al. 2017)
	ZeroInitResidual bool `toml:"zero_init_residual" when:"init.checkpoint= and init.image.path="`

	// Size is the side of an image.
	Size int `toml:"-"`
}

// Statistics that the batch norms of a momentum encoder normalise by.
const (
	TeacherNormBatch   = "batch"
	TeacherNormRunning = "running"
)

// Defaults implements section.Defaulter.
func (r *ResNet) Defaults() { *r = ResNet{Depth: 50, Width: 64, TeacherNorm: TeacherNormBatch} }

// Check implements section.Checked.
func (r *ResNet) Check(k *section.Checker) {
	k.NotNegative("depth", "width", "frozen_stages", "shuffle_groups")
	if k.Has(section.Convolutions) || r.TeacherNorm != "" {
		k.OneOf("teacher_norm", TeacherNormBatch, TeacherNormRunning)
	}
	if !k.Has(section.Convolutions) {
		return
	}
	k.Require("depth", resNetBlocks[r.Depth][0] > 0, "must be 18, 34, 50 or 101")
	k.Positive("width")
	rows := int(k.Number("train.batch_size"))
	if k.Has(section.BatchNorms) {
		oneBatch(k, `batch norms of model.image.style "resnet" that are not frozen`)
		k.Training("train.batch_size", rows*section.Of[ImageOptions](k).Patches() != 1,
			"must be at least 2 with images of one place",
			"one row has no variance: or set model.image.resnet.frozen_norm = true")
	}
	if r.ShuffleGroups <= 1 { // nothing to hide from
		return
	}
	const key = "shuffle_groups"
	k.Training(key, k.Value("momentum.enabled") == true, "must be 0 without momentum",
		"there is no key whose batch norm could tell which batch it is of")
	k.Training(key, k.Has(section.BatchNorms), "must be 0 with frozen batch norms",
		"they take no statistics from the batch")
	k.Training(key, r.TeacherNorm == TeacherNormBatch, `must be 0 with model.image.resnet.teacher_norm "running"`,
		"batch norms of the momentum encoder take no statistics from the batch")
	if rows < 1 {
		return // reported with the batch
	}
	k.Training(key, rows%r.ShuffleGroups == 0, fmt.Sprintf("must divide train.batch_size (%d)", rows),
		"the groups have one size")
	k.Training(key, rows != r.ShuffleGroups, "must be less than train.batch_size", "a group is 2 images at least")
}

// oneBatch tells batch norms, which a key asks for, that pairs of several micro-batches are compared.
func oneBatch(k *section.Checker, key string) {
	k.Training("train.accumulate", !k.Has(section.FeatureBatches), `must be "gradients" with `+key,
		"a batch norm would see one micro-batch at a time, and the pairs would not be those of one batch")
}

// Widest returns the values of an image in the largest layer.
func (r ResNet) Widest() float64 {
	side := float64(r.Size)
	if r.SmallStem {
		return side * side * float64(r.Channels()/8)
	}
	side = math.Ceil(side / 2)
	// the stem's; the first stage has a quarter of its places
	return side * side * float64(max(r.Width, r.Channels()/32))
}

// ResNetDepths are the depths that there are.
var ResNetDepths = []int{18, 34, 50, 101}

// resNetBlocks are the blocks of each stage by depth.
var resNetBlocks = map[int][4]int{18: {2, 2, 2, 2}, 34: {3, 4, 6, 3}, 50: {3, 4, 6, 3}, 101: {3, 4, 23, 3}}

// Bottleneck says whether blocks are bottlenecks of three convolutions; others have two.
func (r ResNet) Bottleneck() bool { return r.Depth >= 50 }

// expansion is the channels of a block by those of its convolution of 3 x 3.
func (r ResNet) expansion() int {
	if r.Bottleneck() {
		return 4
	}
	return 1
}

// Channels returns D, those of the last layer.
func (r ResNet) Channels() int { return 8 * r.Width * r.expansion() }

// side returns the places of a side behind so many layers of stride 2, each of which halves it and rounds up.
func (r ResNet) side(halvings int) int { return (r.Size + 1<<halvings - 1) >> halvings }

// stemHalvings are the layers of stride 2 before the stages: the convolution and the pooling.
func (r ResNet) stemHalvings() int {
	if r.SmallStem {
		return 0
	}
	return 2
}

// Places returns P, the places of the last layer: 7 x 7 of an image of 224 x 224.
func (r ResNet) Places() int {
	side := r.side(r.stemHalvings() + 3)
	return side * side
}

// Sizes counts the weights of the convolutions, those of them that are locked, and the values of an image that the
// backward pass reads of those that are not.
func (r ResNet) Sizes() (weights, locked, kept int64) {
	r.walk(func(l ResNetLayer) {
		n := int64(l.Out) * int64(l.In) * int64(l.Geometry.Kernel) * int64(l.Geometry.Kernel)
		weights += n
		if l.stage < r.FrozenStages {
			locked += n
			return
		}
		kept += int64(l.Geometry.OutHeight()) * int64(l.Geometry.OutWidth()) * int64(l.Out)
	})
	return weights, locked, kept
}

// ResNetLayer is a convolution with its batch norm.
type ResNetLayer struct {
	Conv, Norm string // names of both below the tower, such as layer1/00/conv1
	In, Out    int    // channels
	Geometry   conv.Geometry
	ReLU       bool // follows, of the last layer of a block the sum
	stage      int  // 0: the stem
	last       bool // of a block
}

// ResNetBlock is a block of a stage.
type ResNetBlock struct {
	Layers []ResNetLayer
	Down   *ResNetLayer // of its input; nil: the input is added as it is
}

// walk calls f for every convolution.
func (r ResNet) walk(f func(l ResNetLayer)) {
	f(r.Stem())
	for stage := range 4 {
		for _, b := range r.Stage(stage) {
			for _, l := range b.Layers {
				f(l)
			}
			if b.Down != nil {
				f(*b.Down)
			}
		}
	}
}

// Stem is the first convolution. Pooling of 3 x 3 with stride 2 follows, unless SmallStem says other.
func (r ResNet) Stem() ResNetLayer {
	g := conv.Geometry{Height: r.Size, Width: r.Size, Kernel: 7, Stride: 2, Pad: 3}
	if r.SmallStem {
		g.Kernel, g.Stride, g.Pad = 3, 1, 1
	}
	return ResNetLayer{Conv: "conv1", Norm: "bn1", In: 3, Out: r.Width, Geometry: g, ReLU: true}
}

// Stage returns the blocks of a stage, counted from 0 to 3.
func (r ResNet) Stage(i int) (blocks []ResNetBlock) {
	width := r.Width << i
	out := width * r.expansion()
	after := r.side(r.stemHalvings() + i) // places of a side behind the first block
	in, side, stride := r.Width, after, 1
	if i > 0 {
		in, side, stride = out/2, r.side(r.stemHalvings()+i-1), 2
	}
	for k := range resNetBlocks[r.Depth][i] {
		of := func(conv1, norm string, side, in, out, kernel, stride int) ResNetLayer {
			name := fmt.Sprintf("layer%d/%02d/", i+1, k)
			return ResNetLayer{Conv: name + conv1, Norm: name + norm, In: in, Out: out, stage: i + 1, ReLU: true,
				Geometry: conv.Geometry{Height: side, Width: side, Kernel: kernel, Stride: stride, Pad: kernel / 2}}
		}
		var b ResNetBlock
		if r.Bottleneck() {
			b.Layers = []ResNetLayer{
				of("conv1", "bn1", side, in, width, 1, 1),
				of("conv2", "bn2", side, width, width, 3, stride),
				of("conv3", "bn3", after, width, out, 1, 1),
			}
		} else {
			b.Layers = []ResNetLayer{
				of("conv1", "bn1", side, in, width, 3, stride),
				of("conv2", "bn2", after, width, width, 3, 1),
			}
		}
		b.Layers[len(b.Layers)-1].last = true
		if stride != 1 || in != out {
			down := of("downsample/0", "downsample/1", side, in, out, 1, stride)
			down.ReLU = false
			b.Down = &down
		}
		blocks = append(blocks, b)
		in, side, stride = out, after, 1
	}
	return blocks
}

// Forward encodes x (B*S*S, 3), rows of places, to the places of the last layer: (B*P, D).
func (r ResNet) Forward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	r.check(x)
	x = r.layer(c, s, r.Stem(), x, nil)
	if !r.SmallStem {
		side := r.side(1)
		x = conv.MaxPool(x, conv.Geometry{Height: side, Width: side, Kernel: 3, Stride: 2, Pad: 1})
	}
	for i := range 4 {
		for _, b := range r.Stage(i) {
			s.block(func() { x = r.block(c, s, b, x) })
		}
	}
	return x
}

// block passes x through a block.
func (r ResNet) block(c *Context, s Scope, b ResNetBlock, x *gorgonia.Node) *gorgonia.Node {
	y, last := x, len(b.Layers)-1
	for _, l := range b.Layers[:last] {
		y = r.layer(c, s, l, y, nil)
	}
	if b.Down != nil {
		x = r.layer(c, s, *b.Down, x, nil)
	}
	return r.layer(c, s, b.Layers[last], y, x)
}

// layer is a convolution of x with its batch norm, what is added to it, and ReLU. Where no gradient is wanted all is
// one pass.
func (r ResNet) layer(c *Context, s Scope, l ResNetLayer, x, add *gorgonia.Node) *gorgonia.Node {
	frozen := l.stage < r.FrozenStages
	if frozen {
		s = s.As(Traits{Locked: true})
	}
	k := l.Geometry.Kernel
	w := s.In(l.Conv).Param("weight", fanOut(l.Out*k*k), l.Out, l.In, k, k)
	n := s.In(l.Norm)
	if r.FrozenNorm {
		n = n.As(Traits{Locked: true})
	}
	norm := BatchNorm{Add: add, ReLU: l.ReLU}
	if r.ZeroInitResidual && l.last {
		norm.Weight = Zeros
	}
	if c.Statistics == nil || frozen {
		return norm.folded(n, x, w, l.Geometry)
	}
	return norm.Of(c, n, conv.Conv(x, w, l.Geometry))
}

// fanOut starts a convolution as He et al. 2015 do, by the number of its outputs: N(0, 2/n) (kaiming_normal_ of
// PyTorch with mode fan_out).
func fanOut(n int) Init { return Normal(math.Sqrt(2 / float64(n))) }

// check refuses what no network can be made of.
func (r ResNet) check(x *gorgonia.Node) {
	if _, known := resNetBlocks[r.Depth]; !known {
		misuse("resnet", x, "depth must be 18, 34, 50 or 101 (got %d)", r.Depth)
	}
	if r.Width < 1 || r.Size < 1 {
		misuse("resnet", x, "want a width and a size of at least 1 (got %d and %d)", r.Width, r.Size)
	}
	if r.FrozenStages < 0 || r.FrozenStages > 5 {
		misuse("resnet", x, "frozen stages must be 0 to 5, the stem and four stages (got %d)", r.FrozenStages)
	}
	if s := x.Shape(); len(s) != 2 || s[1] != 3 || s[0]%(r.Size*r.Size) != 0 {
		misuse("resnet", x, "want rows of places (B*%d*%d, 3)", r.Size, r.Size)
	}
}

// imageRows are the places of images (B, 3, S, S), with a group of them after the other where a shuffle orders them.
func imageRows(images *gorgonia.Node, order *gorgonia.Node) *gorgonia.Node {
	s := images.Shape()
	x := conv.FromPlanes(images) // (B*S*S, 3)
	if order == nil {
		return x
	}
	return nn.GatherRows(x, order, s[2]*s[3])
}
