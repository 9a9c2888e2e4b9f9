package config

import (
	"fmt"
	"math"
)

// ResNet is what an image tower of model.image.style = "resnet" is besides model.image: a residual network of
// convolutions (He et al. 2016) in the form of torchvision.
type ResNet struct {
	Depth            int    `toml:"depth" fixed:"model" max:"101"`                         // layers: 18 or 34 (basic blocks, 8 x width channels come out) | 50 or 101 (bottlenecks, 32 x width channels come out)
	Width            int    `toml:"width" fixed:"model" max:"1024"`                        // channels of the stem and of the first stage, which double from stage to stage: 64 is that of the published networks
	SmallStem        bool   `toml:"small_stem" fixed:"model"`                              // the stem of small images: a convolution of 3 x 3 with stride 1 and no pooling, so that an image is 8 times as wide as the last layer; else 7 x 7 with stride 2 and pooling, and 32 times
	FrozenStages     int    `toml:"frozen_stages" read:"resnet steps" fixed:"run" max:"5"` // so many of the first parts stay as they start, the stem counted as one and then the four stages, with batch norms as in inference: 5 - n of torchvision's trainable layers, mmdetection's frozen_stages + 1; 0: none
	FrozenNorm       bool   `toml:"frozen_norm" read:"resnet steps" fixed:"run"`           // all batch norms are as in inference and keep the weights, biases and running statistics that they start with, as torchvision's FrozenBatchNorm2d
	TeacherNorm      string `toml:"teacher_norm" read:"teacher norms"`                     // what batch norms of the momentum twin normalise by: batch (the statistics of its own batch, as in MoCo) | running (as in inference: the twin of the running statistics, for towers that start from stored weights)
	ShuffleGroups    int    `toml:"shuffle_groups" read:"batch norms" max:"1024"`          // a batch norm takes its statistics from each of so many groups of the batch by itself, the twin's from groups of shuffled images (shuffling BN of MoCo); a divisor of train.batch_size and a multiple of the processes that train together; 0 or 1: from the whole batch
	ZeroInitResidual bool   `toml:"zero_init_residual" read:"random tower"`                // the last batch norm of a block starts with weight 0, so that a block starts as the identity (Goyal et al. 2017)
}

// Values of model.image.resnet.teacher_norm.
const (
	TeacherNormBatch   = "batch"
	TeacherNormRunning = "running"
)

func (r *ResNet) defaults() { *r = ResNet{Depth: 50, Width: 64, TeacherNorm: TeacherNormBatch} }

func (r *ResNet) check(k *checker, c *Config) {
	k.NotNegative("model.image.resnet.depth", "model.image.resnet.width", "model.image.resnet.frozen_stages", "model.image.resnet.shuffle_groups")
	if c.readsResNet() || r.TeacherNorm != "" {
		k.OneOf("model.image.resnet.teacher_norm", TeacherNormBatch, TeacherNormRunning)
	}
	if !c.readsResNet() {
		return
	}
	k.Require("model.image.resnet.depth", r.basic() || r.bottleneck(), "must be 18, 34, 50 or 101")
	k.Positive("model.image.resnet.width")
	if c.trainsResNetNorms() {
		k.accumulates(c, `batch norms of model.image.style "resnet" that are not frozen`)
		last := c.Model.Image.Patches() * c.Train.BatchSize
		k.Training("train.batch_size", last != 1, "must be at least 2 with images of one place", "one row has no variance: or set model.image.resnet.frozen_norm = true")
	}
	r.checkGroups(k, c)
}

// checkGroups tells groups of a batch that there is nothing to hide from, or that are none.
func (r *ResNet) checkGroups(k *checker, c *Config) {
	if r.ShuffleGroups <= 1 {
		return
	}
	const path = "model.image.resnet.shuffle_groups"
	k.Training(path, c.Momentum.Enabled, "must be 0 without momentum", "there is no key whose batch norm could tell which batch it is of")
	k.Training(path, c.trainsResNetNorms(), "must be 0 with frozen batch norms", "they take no statistics from the batch")
	k.Training(path, r.TeacherNorm == TeacherNormBatch, `must be 0 with model.image.resnet.teacher_norm "running"`, "batch norms of the twin take no statistics from the batch")
	if c.Train.BatchSize < 1 {
		return // reported with the batch
	}
	k.Training(path, c.Train.BatchSize%r.ShuffleGroups == 0, fmt.Sprintf("must divide train.batch_size (%d)", c.Train.BatchSize), "the groups have one size")
	k.Training(path, c.Train.BatchSize != r.ShuffleGroups, "must be less than train.batch_size", "a group is 2 images at least")
}

// basic and bottleneck say which blocks there are.
func (r ResNet) basic() bool      { return r.Depth == 18 || r.Depth == 34 }
func (r ResNet) bottleneck() bool { return r.Depth == 50 || r.Depth == 101 }

// channels returns those of the last layer.
func (r ResNet) channels() int {
	if r.basic() {
		return 8 * r.Width
	}
	return 32 * r.Width
}

// stride is how many times as wide as the last layer an image is.
func (r ResNet) stride() int {
	if r.SmallStem {
		return 8
	}
	return 32
}

// widest returns the channels of an image of the given side in the largest layer.
func (r ResNet) widest(size int) float64 {
	side := float64(size)
	if r.SmallStem {
		return side * side * float64(r.channels()/8)
	}
	side = math.Ceil(side / 2)
	return side * side * float64(max(r.Width, r.channels()/32)) // the stem's; the first stage has a quarter of its places
}

// readsResNet says whether images pass a residual network.
func (c *Config) readsResNet() bool {
	return c.Model.seesImages() && c.Model.Image.Style == StyleResNet
}

// trainsResNetNorms says whether batch norms of a residual network see the statistics of a batch in training.
func (c *Config) trainsResNetNorms() bool {
	r := c.Model.Image.ResNet
	return c.readsResNet() && !c.Model.Image.Freeze && !r.FrozenNorm && r.FrozenStages < 5
}
