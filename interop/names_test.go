package interop

import (
	"fmt"
	"regexp"
	"strings"
)

// layout says which tensors of a published ALBEF checkpoint a parameter of this module is made
// of: their values one after the other. Shapes differ in axes alone, never in the order.
var layout = []struct{ ours, theirs string }{
	{`image/cls_token`, `visual_encoder.cls_token`},
	{`image/pos_embed`, `visual_encoder.pos_embed`},
	{`image/patch_embed/(weight|bias)`, `visual_encoder.patch_embed.proj.$1`},
	{`image/blocks/(\d+)/(norm1|norm2)/(weight|bias)`, `visual_encoder.blocks.$1.$2.$3`},
	{`image/blocks/(\d+)/(attn|mlp)/(\w+)/(weight|bias)`, `visual_encoder.blocks.$1.$2.$3.$4`},
	{`image/norm/(weight|bias)`, `visual_encoder.norm.$1`},
	{`text/embeddings/(word|position|token_type)/weight`, `text_encoder.bert.embeddings.${1}_embeddings.weight`},
	{`text/embeddings/norm/(weight|bias)`, `text_encoder.bert.embeddings.LayerNorm.$1`},
	{`text/layers/(\d+)/attention/qkv/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.attention.self.{query,key,value}.$2`},
	{`text/layers/(\d+)/crossattention/query/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.crossattention.self.query.$2`},
	{`text/layers/(\d+)/crossattention/kv/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.crossattention.self.{key,value}.$2`},
	{`text/layers/(\d+)/(attention|crossattention)/output/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.$2.output.dense.$3`},
	{`text/layers/(\d+)/(attention|crossattention)/norm/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.$2.output.LayerNorm.$3`},
	{`text/layers/(\d+)/ffn/(intermediate|output)/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.$2.dense.$3`},
	{`text/layers/(\d+)/ffn/norm/(weight|bias)`, `text_encoder.bert.encoder.layer.$1.output.LayerNorm.$2`},
	{`text/mlm/dense/(weight|bias)`, `text_encoder.cls.predictions.transform.dense.$1`},
	{`text/mlm/norm/(weight|bias)`, `text_encoder.cls.predictions.transform.LayerNorm.$1`},
	{`text/mlm/bias`, `text_encoder.cls.predictions.bias`},
	{`image_proj/(weight|bias)`, `vision_proj.$1`},
	{`text_proj/(weight|bias)`, `text_proj.$1`},
	{`itm_head/(weight|bias)`, `itm_head.$1`},
	{`temperature`, `temp`},
}

// published returns the names of the tensors that a parameter is made of; with momentum those in the
// momentum encoder, whose module has the suffix _m.
func published(name string, momentum bool) ([]string, error) {
	for _, l := range layout {
		re := regexp.MustCompile("^" + l.ours + "$")
		if !re.MatchString(name) {
			continue
		}
		theirs := re.ReplaceAllString(name, l.theirs)
		theirs = regexp.MustCompile(`\.0(\d)\.`).ReplaceAllString(theirs, ".$1.") // 03 is 3 there
		if module, rest, ok := strings.Cut(theirs, "."); momentum && ok {
			theirs = module + "_m." + rest
		}
		before, list, several := strings.Cut(theirs, "{")
		if !several {
			return []string{theirs}, nil
		}
		list, after, _ := strings.Cut(list, "}")
		var names []string
		for part := range strings.SplitSeq(list, ",") {
			names = append(names, before+part+after)
		}
		return names, nil
	}
	return nil, fmt.Errorf("interop: the published layout has no tensor for %s: give it a line in layout", name)
}
