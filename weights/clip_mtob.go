package weights

import "errors"

// clipMTOB is the dual encoder of clip-mtob (its "Multi(n,m)", and its reference with one class token): the image tower
// of open_clip with class tokens (m, D), and post-norm text layers by the names of PyTorch's nn.TransformerEncoder.
var clipMTOB = family{
	name:  "clip-mtob",
	types: []string{"clip-mtob"},
	parts: []part{openCLIPImage(classTokens), {
		prefixes: []string{""},
		marks:    []string{"token_embedding.weight", "ln_embedding.weight", "ln_final.weight"},
		needs: []rule{
			{"text/embeddings/word/weight", "token_embedding.weight", nil},
			{"text/embeddings/position/weight", "positional_embedding", matrix},
			{"text/embeddings/norm/*", "ln_embedding.*", nil},
			{"text/layers/#/attention/qkv/*", "transformer.encoder.layers.#.self_attn.in_proj_*", nil},
			{"text/layers/#/attention/output/*", "transformer.encoder.layers.#.self_attn.out_proj.*", nil},
			{"text/layers/#/attention/norm/*", "transformer.encoder.layers.#.norm1.*", nil},
			{"text/layers/#/ffn/intermediate/*", "transformer.encoder.layers.#.linear1.*", nil},
			{"text/layers/#/ffn/output/*", "transformer.encoder.layers.#.linear2.*", nil},
			{"text/layers/#/ffn/norm/*", "transformer.encoder.layers.#.norm2.*", nil},
			{"text/norm/*", "ln_final.*", nil},
		},
		may: []rule{{"text_proj/weight", "text_projection", transposed}},
	}, logitScale},
	describe: func(d *description) error {
		if d.depth("image/blocks/") == 0 || d.depth("text/layers/") == 0 {
			return errors.New("it lacks the image or the text tower, and the text tower is one of model.system = \"clip\" alone")
		}
		d.towerNotes = append(d.towerNotes, "its text layers are those of model.system = \"clip\" without a model.text.style: in any other system a text tower that starts from them computes something else")
		return d.towers(
			imageFacts{style: "clip", activation: "gelu", pool: "class", eps: 1e-5,
				preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}},
			textFacts{activation: "gelu", pool: "class", eps: 1e-5, tokens: true})
	},
}

// classes is the number of class tokens of an image, 0 without any.
func (f *fit) classes(name string) int {
	switch v, ok := f.values[name]; {
	case !ok:
		return 0
	case len(v.shape) == 2:
		return v.shape[0]
	}
	return 1
}
