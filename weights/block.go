package weights

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// blockFacts are what no tensor of a text tower of style block shows, and how config.json names it.
type blockFacts struct {
	encoders.Block
	pool, activation string
	eps              float64
	positions        int      // where no file says how many
	width            []string // keys of config.json, in the order in which they are looked for
	layers, heads    []string
	mlp, act, norm   []string
	theta            []string
	longest          []string
	ntk              bool // rotary positions of type ntk are those of GTE
}

// Usual names of the keys.
var (
	keysWidth   = []string{"hidden_size"}
	keysLayers  = []string{"num_hidden_layers"}
	keysHeads   = []string{"num_attention_heads"}
	keysMLP     = []string{"intermediate_size"}
	keysAct     = []string{"hidden_activation", "hidden_act", "activation_function"}
	keysNorm    = []string{"rms_norm_eps", "norm_eps", "layer_norm_eps", "layer_norm_epsilon"}
	keysLongest = []string{"max_position_embeddings", "n_positions"}
)

// blockActivation is the name of an activation by that of Hugging Face.
func blockActivation(place, name, otherwise string) (string, error) {
	switch name {
	case "silu", "swish", "swiglu":
		return "silu", nil
	case "geglu":
		return "gelu", nil
	case "relu":
		return "relu", nil
	}
	of, err := activation(place, name, otherwise)
	if err != nil {
		return "", fmt.Errorf("%s is %q, and gelu, gelu_pytorch_tanh, gelu_new, gelu_fast, quick_gelu, silu and relu are read", place, name)
	}
	return of, nil
}

// block sets the keys of [model.text] and [model.text.block].
func (d *description) block(o blockFacts) error {
	k, b := d.keys(), o.Block
	words, err := d.size("text/embeddings/word/weight", 0)
	if err != nil {
		return err
	}
	embedded, err := d.size("text/embeddings/word/weight", 1)
	if err != nil {
		return err
	}
	width, err := d.size("text/layers/00/attention/output/weight", 0)
	if err != nil {
		return err
	}
	inner, err := d.size("text/layers/00/attention/output/weight", 1)
	if err != nil {
		return err
	}
	hidden, err := d.size("text/layers/00/ffn/output/weight", 1)
	if err != nil {
		return err
	}
	up, err := d.size("text/layers/00/ffn/intermediate/weight", 0)
	if err != nil {
		return err
	}
	joint, err := d.size("text/layers/00/attention/qkv/weight", 0)
	if err != nil {
		return err
	}
	depth := d.depth("text/layers/")
	if b.Shared > 0 {
		b.Shared, depth = depth, cmp.Or(k.whole(o.layers...), 12)
	}
	if b.Shared == depth {
		b.Shared = 0
	}
	heads := k.whole(o.heads...)
	if heads == 0 {
		if heads, err = d.heads("text", 0, inner); err != nil {
			return err
		}
	}
	if heads < 1 || inner%heads != 0 {
		return fmt.Errorf("%s has %d heads, which do not divide the %d channels of its attention", d.path, heads, inner)
	}
	if b.HeadWidth = inner / heads; b.HeadWidth*heads == width {
		b.HeadWidth = 0
	}
	if b.KeyHeads = (joint - inner) / 2 / (inner / heads); b.KeyHeads == heads {
		b.KeyHeads = 0
	}
	if joint != inner+2*cmp.Or(b.KeyHeads, heads)*(inner/heads) {
		return fmt.Errorf("queries, keys and values have %d channels, which are no heads of %d", joint, inner/heads)
	}
	switch {
	case up == 2*hidden:
		b.Gated = true
	case up != hidden:
		return fmt.Errorf("an MLP has %d channels before and %d after its activation", up, hidden)
	}
	act, err := blockActivation("hidden_act", k.text(o.act...), o.activation)
	if err != nil {
		return err
	}
	if b.Gated && act == "relu" {
		return fmt.Errorf("%s has gated MLPs with relu, and gelu, gelu_tanh, quick_gelu and silu are read", d.path)
	}
	for _, c := range []struct {
		names []string
		is    int
	}{{o.width, width}, {o.layers, depth}, {o.mlp, hidden}, {[]string{"vocab_size"}, words}} {
		if said := k.whole(c.names...); !(slices.Equal(c.names, []string{"vocab_size"}) && words > said) {
			if err := d.agrees(c.names[0], said, c.is); err != nil { // rows of words are more where they are padded
				return err
			}
		}
	}
	bias := func(name string) bool { return d.has("text/layers/00/" + name) }
	b.QKVBias, b.OutputBias = bias("attention/qkv/bias"), bias("attention/output/bias")
	b.UpBias, b.DownBias = bias("ffn/intermediate/bias"), bias("ffn/output/bias")
	b.FinalNorm, b.EmbedNorm = d.has("text/norm/weight"), d.has("text/embeddings/norm/weight")
	if b.Order != encoders.OrderPost {
		b.FirstNorm = bias("norm1/weight")
	}
	if b.Norm == encoders.NormLayer {
		b.NormBias = bias("norm2/bias")
	}
	if !bias("attention/q_norm/weight") {
		b.QKNorm = ""
	}
	if v, ok := d.values["text/embeddings/token_type/weight"]; ok {
		b.Types = v.shape[0]
	}
	if d.has("text/embeddings/project/weight") {
		b.EmbedWidth = embedded
	} else if embedded != width {
		return fmt.Errorf("embeddings of words have %d channels and layers %d, and no layer is between them", embedded,
			width)
	}
	positions := min(cmp.Or(k.whole(o.longest...), o.positions), 65536)
	if v, ok := d.values[textPositions]; ok {
		positions = v.shape[0]
	}
	if v, ok := d.values["text/relative/weight"]; ok {
		b.Buckets, b.RelativeNorm = v.shape[0], d.has("text/relative_norm/weight")
	}
	if b.Places == encoders.PlacesRotary {
		d.rotaryPlaces(k, &b, o, inner/heads)
	}
	windows(k, &b, depth)
	if k.err != nil {
		return k.err
	}
	d.set("model.text.style", encoders.StyleBlock)
	d.set("model.text.layers", depth)
	d.set("model.text.fusion_layers", 0)
	d.set("model.text.width", width)
	d.set("model.text.heads", heads)
	d.set("model.text.mlp", hidden)
	d.set("model.text.positions", positions)
	d.set("model.text.activation", act)
	d.set("model.text.pool", d.pool(o.pool))
	d.set("model.text.eps", cmp.Or(k.number(o.norm...), o.eps))
	d.blockKeys("model.text.block.", b)
	return d.lengths(positions, false)
}

// blockKeys sets the keys of a block that are not its defaults.
func (d *description) blockKeys(prefix string, b encoders.Block) {
	var usual encoders.Block
	usual.Defaults()
	d.differing(prefix, b, usual)
}

// rotaryPlaces reads how queries and keys are turned: keys of newer files stand in rope_parameters, of all layers or of
// each kind of them, of older ones beside the others and in rope_scaling.
func (d *description) rotaryPlaces(k *keys, b *encoders.Block, o blockFacts, head int) {
	whole := k.below("rope_parameters", "rope_scaling")
	near := whole.below("sliding_attention")
	if full := whole.below("full_attention"); full.all != nil {
		whole = full
	}
	b.Theta = cmp.Or(whole.number("rope_theta"), k.number(o.theta...), b.Theta)
	local := cmp.Or(near.number("rope_theta"), k.number("local_rope_theta", "rope_local_base_freq"), b.LocalTheta)
	if b.LocalTheta = local; local == b.Theta {
		b.LocalTheta = 0
	}
	kind, factor := cmp.Or(whole.text("rope_type", "type"), "default"), cmp.Or(whole.number("factor"), 1)
	switch {
	case kind == "default":
	case kind == "linear":
		b.Stretch = factor
	case kind == "ntk" && o.ntk && whole.all["mixed_b"] == nil: // with s = factor: (s theta)^(-2i/d) / s^(2/d)
		b.Theta, b.Stretch = b.Theta*factor, math.Pow(factor, 2/float64(head))
	default:
		k.err = errors.Join(k.err, fmt.Errorf("%s has rotary positions of type %q, and default and linear are read", d.path, kind))
	}
	if kind := cmp.Or(near.text("rope_type", "type"), "default"); kind != "default" {
		k.err = errors.Join(k.err, fmt.Errorf("%s has rotary positions of type %q in layers with a window, and default is read", d.path, kind))
	}
	part := cmp.Or(whole.number("partial_rotary_factor"), k.number("partial_rotary_factor", "rotary_emb_fraction"), 1)
	if b.Turned = int(math.Round(part * float64(head))); b.Turned == head {
		b.Turned = 0
	}
	k.err = errors.Join(k.err, whole.err, near.err)
}

// windows reads which of some layers have the window of a block.
func windows(k *keys, b *encoders.Block, layers int) {
	types := k.texts("layer_types")
	if b.Window == 0 {
		b.GlobalEvery, b.GlobalAt, b.LocalTheta = 0, 0, 0
		return
	}
	if types == nil {
		every := k.whole("global_attn_every_n_layers", "sliding_window_pattern", "_sliding_window_pattern")
		if every == 0 {
			every = b.GlobalEvery
		}
		for i := range layers {
			kind := "full_attention"
			if b.Window > 0 && every > 0 && i%every != b.GlobalAt%every {
				kind = "sliding_attention"
			}
			types = append(types, kind)
		}
	}
	places := map[string][]int{}
	for i, kind := range types[:min(len(types), layers)] {
		places[kind] = append(places[kind], i)
		if kind != "full_attention" && kind != "sliding_attention" {
			k.err = errors.Join(k.err, fmt.Errorf("%s: layer_types has %q, and full_attention and sliding_attention are read", k.path, kind))
			return
		}
	}
	full := places["full_attention"]
	b.GlobalEvery, b.GlobalAt = 0, 0
	switch {
	case len(places["sliding_attention"]) == 0:
		b.Window, b.LocalTheta = 0, 0
		return
	case len(full) == 0:
		return
	case len(full) == 1:
		b.GlobalEvery, b.GlobalAt = max(full[0]+1, layers-full[0]), full[0]
	default:
		b.GlobalEvery = full[1] - full[0]
		b.GlobalAt = full[0]
	}
	for i, kind := range types[:min(len(types), layers)] {
		if (i%b.GlobalEvery == b.GlobalAt) != (kind == "full_attention") {
			k.err = errors.Join(k.err, fmt.Errorf("%s: layer_types are %s, and one layer without a window in every so many is read", k.path, strings.Join(types, ", ")))
			return
		}
	}
}

// layer are rules for a weight, which every layer has, and its bias, which some have.
func layerRules(pairs ...string) (needs, may []rule) {
	for i := 0; i < len(pairs); i += 2 {
		needs = append(needs, rule{pairs[i] + "/weight", strings.ReplaceAll(pairs[i+1], "*", "weight"), nil})
		may = append(may, rule{pairs[i] + "/bias", strings.ReplaceAll(pairs[i+1], "*", "bias"), nil})
	}
	return needs, may
}
