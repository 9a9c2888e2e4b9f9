package weights

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/geoalign/geoalign/encoders"
)

// plainBlock is a tower of style block whose options no tensor shows have their defaults.
func plainBlock() *encoders.ImageBlock {
	b := &encoders.ImageBlock{}
	b.Defaults()
	return b
}

// options takes the options of a tower of style block that its tensors show.
func (d *description) options(b *encoders.ImageBlock, width, heads, grid int) error {
	layer := func(name string) bool { return d.has("image/blocks/00/" + name) }
	b.ClassToken, b.PatchBias = d.has("image/cls_token"), d.has("image/patch_embed/bias")
	b.Positions, b.FirstNorm = d.has(imagePositions), d.has("image/norm_pre/weight")
	b.FinalNorm, b.PoolNorm = d.has("image/norm/weight"), d.has("image/pool_norm/weight")
	b.QKNorm, b.AttentionNorm, b.MLPNorm = layer("attn/q_norm/weight"), layer("attn/norm/weight"), layer("mlp/norm/weight")
	b.LayerScale, b.Relative, b.Gated = layer("scale1"), layer("attn/relative"), d.gated()
	if hidden, err := d.size("image/pool/mlp/fc1/weight", 0); err == nil {
		b.PoolMLP = hidden
	}
	if !b.Positions && b.Rotary == "" && !b.Relative {
		return fmt.Errorf("it has no positions of patches (pos_embed), and no file says that queries and keys are turned by them (use_rot_pos_emb)")
	}
	if b.Rotary != "" && width/heads%4 != 0 {
		return fmt.Errorf("its heads have %d channels, and those that are turned by rows and columns have a multiple of 4",
			width/heads)
	}
	if b.Relative {
		want := (2*grid - 1) * (2*grid - 1)
		if b.ClassToken {
			want += 3
		}
		if is, err := d.size("image/blocks/00/attn/relative", 0); err != nil || is != want {
			return fmt.Errorf("its relative positions have %d rows, and %d x %d patches have %d: are images of another size than those of the weights?",
				is, grid, grid, want)
		}
	}
	return nil
}

// beyond names a parameter that towers of a style do not have, or one that they have and these weights lack; empty:
// there is none.
func (d *description) beyond(style string) string {
	for _, x := range []struct {
		name   string
		styles []string // that may have it
	}{
		{"image/cls_token", []string{"vit", "deit", "dinov2", "clip"}}, {"image/norm_pre/weight", []string{"clip"}},
		{"image/blocks/00/scale1", []string{"dinov2"}}, {"image/patch_embed/bias", []string{"vit", "deit", "dinov2", "siglip"}},
		{"image/blocks/00/attn/q_norm/weight", nil}, {"image/blocks/00/attn/norm/weight", nil},
		{"image/blocks/00/mlp/norm/weight", nil}, {"image/blocks/00/attn/relative", nil},
	} {
		if d.has(x.name) && !slices.Contains(x.styles, style) {
			return x.name
		}
	}
	for _, x := range []struct {
		name   string
		styles []string // that need it
	}{
		{"image/cls_token", []string{"vit", "deit", "dinov2", "clip"}}, {"image/norm_pre/weight", []string{"clip"}},
		{"image/blocks/00/scale1", []string{"dinov2"}}, {"image/patch_embed/bias", []string{"vit", "deit", "dinov2", "siglip"}},
		{"image/norm/weight", []string{"vit", "deit", "dinov2", "siglip", "clip"}}, {imagePositions, []string{"vit", "deit", "dinov2", "siglip", "clip"}},
	} {
		if !d.has(x.name) && slices.Contains(x.styles, style) {
			return x.name
		}
	}
	return ""
}

// absentBiases gives linear layers that have no bias one of zeros, which computes the same. Where some blocks have it
// and others do not the weights are not complete.
func (d *description) absentBiases() error {
	for _, name := range []string{"attn/qkv", "attn/proj", "mlp/fc1", "mlp/fc2"} {
		var lacks []string
		depth := d.depth("image/blocks/")
		for i := range depth {
			at := fmt.Sprintf("image/blocks/%02d/%s/", i, name)
			if weight, ok := d.values[at+"weight"]; ok && !d.has(at+"bias") {
				lacks = append(lacks, at+"bias")
				if len(lacks) == i+1 {
					d.values[at+"bias"] = value{shape: weight.shape[:1], read: func(dst []float32) error { clear(dst); return nil }}
				}
			}
		}
		if n := len(lacks); n > 0 && n < depth {
			return fmt.Errorf("it lacks what %s is made of, which other blocks have: is it complete?", lacks[0])
		}
		d.missing = slices.DeleteFunc(d.missing, func(name string) bool { return slices.Contains(lacks, name) })
	}
	return nil
}

// differing sets the keys of a table of options that are not its defaults, in the order of its fields.
func (d *description) differing(prefix string, is, usual any) {
	v, was := reflect.ValueOf(is), reflect.ValueOf(usual)
	for i := range v.NumField() {
		if x := v.Field(i).Interface(); x != was.Field(i).Interface() {
			d.set(prefix+v.Type().Field(i).Tag.Get("toml"), x)
		}
	}
}

// qkvBias is the bias of queries, keys and values in one tensor or three, or of queries and values, where keys have none:
// zeros then.
var qkvBias = &shaping{func(in []*Tensor) (value, error) {
	if len(in) != 2 {
		return rows(in)
	}
	n := in[0].Len()
	if len(in[0].Shape) != 1 || len(in[1].Shape) != 1 || in[1].Len() != n {
		return value{}, odd(in[1], fmt.Sprintf("as many numbers as %q has, %d", in[0].Name, n))
	}
	return value{shape: []int{3 * n}, read: func(dst []float32) error {
		clear(dst)
		if err := in[0].Read(dst[:n], 0); err != nil {
			return err
		}
		return in[1].Read(dst[2*n:], 0)
	}}, nil
}, stacked.split}
