package weights

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// timmRotary is how attention of a tower of timm turns queries and keys by the places of patches, which no tensor shows.
type timmRotary struct {
	eva                      bool   // of the class Eva, which reads all tokens in its pool by attention
	kind                     string // of encoders.ImageBlock; empty: not at all
	theta, reference, offset float64
	columnsFirst, adjacent   bool
	poolHeads                int
}

// isEva says whether an architecture of timm is of its class Eva.
func isEva(architecture string) bool {
	for _, part := range []string{"_pe_core_", "_pe_spatial_", "_pe_lang_", "_rope_", "_dinov3"} {
		if strings.Contains(architecture, part) {
			return true
		}
	}
	return strings.HasPrefix(architecture, "eva")
}

// Eva says whether there are arguments of the class Eva alone.
func (a *timmArgs) Eva() bool { return a.Rotary != nil || a.RotaryType != "" || a.Theta != 0 }

// timmRotary returns how an architecture turns queries and keys, with the arguments that the files say.
func (d *description) timmRotary(architecture string) (r timmRotary, err error) {
	has := func(part string) bool { return strings.Contains(architecture, part) }
	args := d.config.Args
	if r.theta = 1e4; !isEva(architecture) {
		if args.Rotary != nil && *args.Rotary {
			return r, fmt.Errorf("%s has use_rot_pos_emb in model_args of %q, and it is read of the architectures eva02_, vit_..._rope_, vit_..._dinov3 and vit_pe_", d.path, architecture)
		}
		return r, nil
	}
	r.eva, r.kind, r.adjacent = true, encoders.RotaryCells, true
	switch {
	case has("_dinov3"):
		r.kind, r.theta, r.adjacent = encoders.RotaryCentred, 100, false
	case has("_pe_"):
		r.columnsFirst, r.poolHeads = true, 8
		if !has("gigantic") {
			r.offset = 1
		}
		r.reference = nativeGrid(architecture)
	case has("_rope_") && has("_reg"), strings.HasPrefix(architecture, "eva02_") && !has("enormous"):
		r.reference = 16
	case has("_rope_"):
		r.theta, r.columnsFirst = 100, true
	default: // the first EVA
		r.kind = ""
	}
	if args.Rotary != nil && !*args.Rotary {
		r.kind = ""
	}
	switch args.RotaryType {
	case "":
	case "cat":
		r.kind = encoders.RotaryCells
	case "dinov3":
		r.kind, r.reference = encoders.RotaryCentred, 0
	default:
		return r, fmt.Errorf("%s has rope_type %q in model_args, and cat and dinov3 are read", d.path, args.RotaryType)
	}
	r.theta = cmp.Or(args.Theta, r.theta)
	if args.RotaryOffset != nil {
		r.offset = *args.RotaryOffset
	}
	if args.RotaryHalf != nil {
		r.adjacent = !*args.RotaryHalf
	}
	if args.RotaryIndexing != "" {
		r.columnsFirst = args.RotaryIndexing == "xy"
	}
	if side, err := args.Reference.square("config.json: model_args.ref_feat_shape"); err != nil {
		return r, err
	} else if side > 0 && r.kind == encoders.RotaryCells {
		r.reference = float64(side)
	}
	r.poolHeads = cmp.Or(args.PoolHeads, r.poolHeads)
	if r.kind == "" {
		r.theta, r.reference, r.offset, r.columnsFirst, r.adjacent = plainBlock().Theta, 0, 0, false, false
	}
	return r, nil
}

// nativeGrid is the patches of a side by the name of an architecture, such as patch14_448.
func nativeGrid(architecture string) float64 {
	_, sizes, _ := strings.Cut(architecture, "_patch")
	patch, side, _ := strings.Cut(sizes, "_")
	p, err := strconv.Atoi(patch)
	s, err2 := strconv.Atoi(side)
	if err != nil || err2 != nil || p < 1 {
		return 0
	}
	return float64(s / p)
}

// timmHeads is the heads of architectures that are not the usual ones for their width, 0 for others.
func timmHeads(architecture string) int {
	for _, x := range []struct {
		part  string
		heads int
	}{
		{"giantopt", 16}, {"vit_base_patch16_gap_224", 16}, {"_pe_core_gigantic", 16}, {"_pe_lang_gigantic", 16},
		{"_pe_spatial_gigantic", 16}, {"vit_huge_plus_patch16_dinov3", 20}, {"vit_7b_patch16_dinov3", 32},
	} {
		if strings.Contains(architecture, x.part) {
			return x.heads
		}
	}
	return 0
}

// timmPool is the global_pool of an architecture, where the argument does not say another.
func timmPool(architecture, pool string, class, normLast bool) string {
	has := func(part string) bool { return strings.Contains(architecture, part) }
	switch {
	case pool != "":
		return pool
	case !class, normLast:
		return "avg"
	case isEva(architecture) && !has("_clip_") && !(has("_rope_") && !has("_gap")), strings.HasPrefix(architecture, "beit"):
		return "avg"
	}
	return "token"
}

// timmRefused is an error for towers of timm that compute something else than their tensors show.
func (d *description) timmRefused(prefix, architecture string) error {
	args, has := d.config.Args, func(name string) bool { _, ok := d.file.Lookup(prefix + name); return ok }
	switch {
	case strings.Contains(architecture, "_mixed_") || has("rope.freqs"):
		return errors.New("its rotary positions are learned (rope_type mixed), and cat and dinov3 are read")
	case strings.Contains(architecture, "eva02_enormous") || strings.Contains(architecture, "_rpn_") || args.ResPost:
		return errors.New("its norms stand behind attention and MLP (use_post_norm, ResPostBlock), and in front of them is read")
	case strings.Contains(architecture, "_relpos_") || strings.Contains(architecture, "_srelpos_"):
		return fmt.Errorf("%s has the architecture %q, whose relative positions are not read", d.path, architecture)
	case has("rel_pos_bias.relative_position_bias_table"):
		return errors.New("its blocks share relative positions (use_shared_rel_pos_bias), and those of each block by itself are read")
	case strings.Contains(architecture, "parallel") || strings.Contains(architecture, "_diff_"):
		return fmt.Errorf("%s has the architecture %q, whose blocks are others", d.path, architecture)
	case args.HeadWidth != 0:
		return fmt.Errorf("%s has attn_head_dim in model_args, and heads of width / num_heads channels are read", d.path)
	case args.AttentionScale:
		return fmt.Errorf("%s has attn_only_layer_scale in model_args, and a scale of both is read", d.path)
	}
	if architecture != "" || d.has("image/blocks/00/attn/relative") {
		return nil
	}
	for _, name := range []string{"blocks.0.attn.q_bias", "blocks.0.attn.q_proj.weight", "blocks.0.gamma_1", "blocks.0.mlp.fc1_g.weight"} {
		if has(name) {
			return fmt.Errorf("it has %s, as towers of timm's eva.py, and no file says which one it is: put its config.json beside it", prefix+name)
		}
	}
	if !d.has(imagePositions) || d.has("image/pool/probe") && d.has("image/norm_pre/weight") {
		return errors.New("its attention turns queries and keys by the places of patches, which no tensor shows: put its config.json beside it")
	}
	return nil
}

// plainTimm refuses arguments of timm that no tensor shows.
func (d *description) plainTimm() error {
	a := d.config.Args
	if a.Stride != 0 && a.Stride != 32 {
		return fmt.Errorf("%s has output_stride %d, and 32 is read", d.path, a.Stride)
	}
	if a.Activation != nil || a.Norm != nil || a.Blur != nil {
		return fmt.Errorf("%s has act_layer, norm_layer or aa_layer in model_args, and those of the architecture are read", d.path)
	}
	return nil
}
