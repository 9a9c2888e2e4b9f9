package weights

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// image sets the keys of [model.image].
func (d *description) image(o imageFacts) error {
	config := cmp.Or(d.config.VisionDict, d.config.Vision, &d.config)
	width, err := d.size("image/pos_embed", 1)
	if err != nil {
		return err
	}
	positions, err := d.size("image/pos_embed", 0)
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
	if o.activation, err = activation("hidden_act", config.HiddenAct, o.activation); err != nil {
		return err
	}
	switch {
	case d.gated():
		hidden, o.activation = back, "swiglu"
	case hidden != back:
		return fmt.Errorf("an MLP of the image tower has %d hidden channels before and %d after its activation", hidden,
			back)
	}
	positions -= d.classes("image/cls_token")
	patch, grid := root(inputs/3), root(positions)
	if positions < 1 || patch*patch*3 != inputs || grid*grid != positions {
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
	if err := d.within(o.style); err != nil {
		return err
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
	d.prepareImages(prepared)
	return nil
}

// gated says whether the MLPs of the image tower make gates and values side by side.
func (d *description) gated() bool {
	hidden, err := d.size("image/blocks/00/mlp/fc1/weight", 0)
	back, also := d.size("image/blocks/00/mlp/fc2/weight", 1)
	return err == nil && also == nil && hidden == 2*back
}

// within refuses parameters that towers of a style have not: without them all states would be others.
func (d *description) within(style string) error {
	for _, x := range []struct {
		name   string
		styles []string // that have it
	}{
		{"image/cls_token", []string{"vit", "deit", "dinov2", "clip"}}, {"image/norm_pre/weight", []string{"clip"}},
		{"image/blocks/00/scale1", []string{"dinov2"}}, {"image/patch_embed/bias", []string{"vit", "deit", "dinov2", "siglip"}},
	} {
		if d.has(x.name) && !slices.Contains(x.styles, style) {
			return fmt.Errorf("it has %s, which towers of style %s have not, and no style has all of its layers",
				x.name, style)
		}
	}
	return nil
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
}

// root is the square root of n, rounded down.
func root(n int) int { return int(math.Sqrt(float64(max(0, n)))) }
