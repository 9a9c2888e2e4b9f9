package weights

import "github.com/geoalign/geoalign/encoders"

// modernBERT is ModernBERT (Warner et al. 2024) of Hugging Face.
var modernBERT = family{
	name:  "modernbert",
	types: []string{"modernbert"},
	parts: []part{blockPart([]string{"model.", ""}, "embeddings.tok_embeddings.weight", nil,
		"text/embeddings/norm", "embeddings.norm.*",
		"text/layers/#/norm1", "layers.#.attn_norm.*",
		"text/layers/#/attention/qkv", "layers.#.attn.Wqkv.*",
		"text/layers/#/attention/output", "layers.#.attn.Wo.*",
		"text/layers/#/norm2", "layers.#.mlp_norm.*",
		"text/layers/#/ffn/intermediate", "layers.#.mlp.Wi.*",
		"text/layers/#/ffn/output", "layers.#.mlp.Wo.*",
		"text/norm", "final_norm.*")},
	unneeded: []string{"decoder.*", "head.*", "classifier.*"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(encoders.Block{Order: encoders.OrderPre, Norm: encoders.NormLayer, Places: encoders.PlacesRotary,
			Theta: 160000, LocalTheta: 10000, Window: ofClass(d, 128) / 2, GlobalEvery: 3}, "gelu", 1e-5, 8192)
		o.theta, o.pool = []string{"global_rope_theta"}, "class"
		if n := k.whole("local_attention"); n > 0 {
			o.Window = n / 2
		}
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}

// blockPart is the tensors of a text tower of style block: embeddings of words and layers, by pairs of names of a
// layer without weight or bias. Of numbered ones every layer has the weight, but for norms.
func blockPart(prefixes []string, words string, may []rule, pairs ...string) part {
	needs, biases := layerRules(pairs...)
	p := part{prefixes: prefixes, marks: []string{words}, may: append(biases, may...),
		needs: []rule{{"text/embeddings/word/weight", words, nil}}}
	for _, r := range needs {
		if r.numbered() && r.ours != "text/layers/#/norm1/weight" {
			p.needs = append(p.needs, r)
			continue
		}
		p.may = append(p.may, r)
	}
	for _, mark := range pairs {
		if mark == "text/layers/#/attention/output" {
			p.marks = append(p.marks, spelledFirst(pairs, mark))
		}
	}
	return p
}

// spelledFirst is the name that one of ours has in the first layer.
func spelledFirst(pairs []string, ours string) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == ours {
			return spelled(pairs[i+1], "0", "weight")
		}
	}
	return ""
}

// usualBlock is a block with the usual names of keys.
func usualBlock(b encoders.Block, activation string, eps float64, positions int) blockFacts {
	var all encoders.Block
	all.Defaults()
	b.Stretch, b.Buckets = all.Stretch, all.Buckets
	if b.Farthest == 0 {
		b.Farthest = all.Farthest
	}
	if b.Theta == 0 {
		b.Theta = all.Theta
	}
	b.FirstNorm, b.NormBias = true, true
	return blockFacts{Block: b, activation: activation, eps: eps, positions: positions, pool: "mean", width: keysWidth,
		layers: keysLayers, heads: keysHeads, mlp: keysMLP, act: keysAct, norm: keysNorm, longest: keysLongest,
		theta: []string{"rope_theta", "rotary_emb_base"}}
}
