package weights

import (
	"cmp"
	"fmt"
	"math"
)

// image sets the keys of [model.image].
func (d *description) image(o imageFacts) error {
	config := cmp.Or(d.config.VisionDict, d.config.Vision, &d.config)
	width, err := d.size("image/patch_embed/weight", 0)
	if err != nil {
		return err
	}
	inputs, err := d.size("image/patch_embed/weight", 1)
	if err != nil {
		return err
	}
	hidden, err := d.size("image/blocks/00/mlp/fc1/weight", 0)
	if err != nil {
		return err
	}
	back, err := d.size("image/blocks/00/mlp/fc2/weight", 1)
	if err != nil {
		return err
	}
	named := activation
	if o.block != nil {
		named = blockActivation
	}
	if o.activation, err = named("hidden_act", config.HiddenAct, o.activation); err != nil {
		return err
	}
	switch {
	case d.gated() && o.block != nil:
		if hidden = back; o.activation == "relu" {
			return fmt.Errorf("%s has gated MLPs with relu, and gelu, gelu_tanh, quick_gelu and silu are read", d.path)
		}
	case d.gated():
		hidden, o.activation = back, "swiglu"
	case hidden != back:
		return fmt.Errorf("an MLP of the image tower has %d hidden channels before and %d after its activation", hidden,
			back)
	}
	if joint, err := d.size("image/blocks/00/attn/qkv/weight", 0); err != nil || joint != 3*width {
		return fmt.Errorf("queries, keys and values have %d channels, and those of a width of %d have %d", joint, width,
			3*width)
	}
	patch := root(inputs / 3)
	positions := d.positions(config, patch)
	grid := root(positions)
	if patch < 1 || patch*patch*3 != inputs || positions < 1 || grid*grid != positions {
		return fmt.Errorf("patches of %d numbers and %d positions are no square patches of a square image", inputs,
			positions)
	}
	size := grid * patch
	// A convolution over patches leaves out what is beyond the last whole one of a larger image.
	whole := func(side int) int {
		if side/patch == grid {
			return size
		}
		return side
	}
	depth := d.depth("image/blocks/")
	heads, err := d.heads("image", cmp.Or(config.Heads, o.heads), width)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		key      string
		said, is int
	}{
		{"hidden_size", config.HiddenSize, width}, {"num_hidden_layers", config.Layers, depth}, {"image_size", whole(config.ImageSize.width), size},
		{"image_size", whole(config.ImageSize.height), size}, {"patch_size", config.PatchSize.width, patch}, {"num_channels", config.Channels, 3},
	} {
		if err := d.agrees(c.key, c.said, c.is); err != nil {
			return err
		}
	}
	if name := d.beyond(o.style); name != "" && o.block == nil {
		return fmt.Errorf("it has or lacks %s, as towers of style %s do not, and no style has all of its layers", name,
			o.style)
	}
	prepared, side, err := d.prepared(o.preprocess)
	if err != nil {
		return err
	}
	if pretrained := d.config.Pretrained; side == 0 && pretrained != nil && len(pretrained.Shape) == 3 &&
		whole(pretrained.Shape[2]) == size {
		side = pretrained.Shape[2]
	}
	if side = cmp.Or(side, config.ImageSize.width, d.config.Args.ImageSize.width); side > 0 && side != size {
		if side%patch == 0 {
			d.note("the files ask for images of %d pixels, and positions are stored for %d: they will be resampled",
				side, size)
			size = side
		} else {
			d.note("the files ask for images of %d pixels, which patches of %d do not divide: %d are taken, and features differ a little", side, patch, size)
		}
	}
	d.set("model.image.style", o.style)
	d.set("model.image.size", size)
	d.set("model.image.patch", patch)
	d.set("model.image.depth", depth)
	d.set("model.image.width", width)
	d.set("model.image.heads", heads)
	d.set("model.image.mlp", hidden)
	d.set("model.image.activation", o.activation)
	d.set("model.image.pool", o.pool)
	d.epsilon("image", cmp.Or(config.Eps, o.said), o.eps)
	if v, ok := d.values["image/registers"]; ok {
		d.set("model.image.registers", v.shape[0])
	}
	if b := o.block; b != nil {
		if err := d.options(b, width, heads, size/patch); err != nil {
			return err
		}
		if b.PoolHeads == heads {
			b.PoolHeads = 0
		}
		if b.PoolMLP == hidden {
			b.PoolMLP = 0
		}
		d.differing("model.image.block.", *b, *plainBlock())
	}
	d.prepareImages(prepared)
	return nil
}

// positions is the number of patches by the table of positions, or where there is none by the size of images that the
// files say.
func (d *description) positions(config *hfConfig, patch int) int {
	if v, ok := d.values[imagePositions]; ok {
		if d.has("image/cls_token") {
			return v.shape[0] - d.classes("image/cls_token")
		}
		return v.shape[0]
	}
	side := cmp.Or(config.ImageSize.width, d.config.Args.ImageSize.width)
	if p := d.config.Pretrained; side == 0 && p != nil && len(p.Shape) == 3 {
		side = p.Shape[2]
	}
	if side == 0 && d.openCLIP != nil {
		side = d.openCLIP.Model.Vision.ImageSize.width
	}
	if side == 0 {
		side = 224
		d.assume("model.image.size")
		d.note("no file says which size images have: 224 pixels are assumed")
	}
	grid := side / max(1, patch)
	return grid * grid
}

// gated says whether the MLPs of the image tower make gates and values side by side.
func (d *description) gated() bool {
	hidden, err := d.size("image/blocks/00/mlp/fc1/weight", 0)
	back, also := d.size("image/blocks/00/mlp/fc2/weight", 1)
	return err == nil && also == nil && hidden == 2*back
}

// prepareImages sets how images are prepared, where it is known.
func (d *description) prepareImages(p preprocess) {
	if p.resize == "" {
		return
	}
	d.set("model.image.mean", p.mean)
	d.set("model.image.std", p.std)
	d.set("model.image.resize", p.resize)
	d.set("model.image.interpolation", p.interpolation)
	if p.crop > 0 && p.crop < 1 {
		d.set("model.image.crop", p.crop)
	}
	if d.down {
		d.set("model.image.centre", "down")
	}
}

// root is the square root of n, rounded down.
func root(n int) int { return int(math.Sqrt(float64(max(0, n)))) }
