// Package exporttest makes tiny models of every style of tower, for tests of what is written of them.
package exporttest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/weights"
)

// Sizes of the models: texts of Words tokens of a vocabulary of Vocab, Rows of them, images of Size pixels.
const (
	Rows, Words, Vocab, Size = 3, 6, 24, 12
	width                    = 16
)

// sizes are the settings of all models.
var sizes = []string{
	"model.image.size=12", "model.image.patch=4", "model.image.depth=2", "model.image.width=16", "model.image.heads=2",
	"model.image.mlp=24", "model.text.layers=2", "model.text.width=16", "model.text.heads=2", "model.text.mlp=24",
	"model.text.positions=6", "model.text.dropout=0", "model.head.dim=8", "train.batch_size=3", "data.tokens=6",
	"queue.size=6",
}

// dual are the settings of a dual encoder without a teacher.
var dual = []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0",
	"objective.mlm.weight=0", "eval.rerank_top=0", "momentum.enabled=false", "queue.size=0",
	"objective.distill.alpha=0", "objective.itc.weight=0", "objective.itc.in_batch_weight=1"}

// heads are the settings of MLPs over stored features.
var heads = []string{"model.system=heads", "data.kind=pairs", "data.pairs.image=a.npy", "data.pairs.text=b.npy",
	"model.heads.in_image=16", "model.heads.in_text=12", "model.heads.layers=2", "model.heads.hidden=16",
	"model.heads.residual=true", "model.heads.layer_norm=true", "model.heads.activation=silu",
	"model.heads.center=true", "momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0",
	"objective.itc.weight=0", "objective.itc.in_batch_weight=1", "objective.itm.weight=0", "objective.mlm.weight=0",
	"eval.rerank_top=0"}

// Case is a model by its settings.
type Case struct {
	Name string
	Pad  int32    // id of padding; below 0: the tokenizer has the template albef, and pads with 0
	Sets []string // beside the sizes
}

// of is a dual encoder of two styles.
func of(name string, pad int32, image, text string, sets ...string) Case {
	return Case{name, pad, slices.Concat(dual, []string{"model.image.style=" + image, "model.text.style=" + text},
		sets)}
}

// Cases are models of every style of tower and option of it.
func Cases() []Case {
	return []Case{
		of("clip", 0, "clip", "clip"),
		of("clip_gelu", 0, "clip", "clip", "model.image.activation=gelu", "model.text.activation=gelu",
			"objective.itc.log_temperature=true"),
		of("clip_tanh", 0, "clip", "clip", "model.image.activation=gelu_tanh", "model.text.activation=gelu_tanh",
			"model.image.resize=crop"),
		of("clip_eps", 0, "clip", "clip", "model.image.eps=1e-3", "model.text.eps=1e-2", "model.image.resize=crop"),
		of("siglip", 0, "siglip", "siglip", "model.head.identity=image", "model.head.dim=16",
			"objective.siglip.weight=1", "objective.itc.in_batch_weight=0"),
		of("siglip_mean", 0, "siglip", "siglip", "model.image.pool=mean"),
		of("siglip_registers", 0, "siglip", "siglip", "model.image.registers=2"),
		of("clip_attention", 0, "clip", "clip", "model.image.pool=attention"),
		of("vit_bert", 0, "vit", "bert"),
		of("vit_crop", 0, "vit", "bert", "model.image.crop=0.75", "model.image.resize=crop", "model.text.eps=1e-3"),
		of("vit_mean", 0, "vit", "bert", "model.image.pool=mean", "model.text.pool=mean"),
		of("vit_weighted", 0, "vit", "bert", "model.text.pool=weighted_mean"),
		of("vit_registers", 0, "vit", "bert", "model.image.registers=3", "model.image.activation=gelu_tanh"),
		of("deit_roberta", 1, "deit", "roberta"),
		of("deit_roberta_pad", 0, "deit", "roberta"),
		of("deit_distilled", 1, "deit", "roberta", "model.image.registers=1"),
		of("dinov2_mpnet", 1, "dinov2", "mpnet", "model.image.mlp=32"),
		of("dinov2_mean", 1, "dinov2", "mpnet", "model.image.mlp=32", "model.image.pool=mean"),
		of("dinov2_swiglu", 1, "dinov2", "mpnet", "model.image.mlp=24", "model.image.activation=swiglu",
			"model.image.registers=2"),
		of("resnet", 0, "resnet", "bert", "model.image.resnet.depth=18", "model.image.resnet.width=2"),
		of("resnet_small", 0, "resnet", "clip", "model.image.resnet.depth=50", "model.image.resnet.width=1",
			"model.image.resnet.small_stem=true"),
		of("oblique", 0, "vit", "bert", "model.head.topology='Ob(4,2)'"),
		of("multi", 0, "vit", "bert", "model.head.topology='Multi(4,2)'", "model.text.positions=8"),
		of("multi_late", 0, "dinov2", "roberta", "model.head.topology='Multi(4,2)'", "model.head.token_blocks=1",
			"model.text.positions=8"),
		of("euclid", 0, "vit", "bert", "model.head.topology=euclid", "objective.itc.score=inner"),
		of("clip_mlp", 0, "clip", "clip", "model.head.style=mlp"),
		of("vit_pooler", 0, "vit", "bert", "model.text.pool=pooler"),
		of("clip_tanh_head", 0, "clip", "clip", "model.head.style=tanh"),
		of("vit_shared", 0, "vit", "bert", "model.head.style=mlp", "model.head.shared=12",
			"model.head.activation=silu"),
		of("clip_gssf", 0, "clip", "clip", "objective.itc.score=gssf", "objective.gssf.blocks=2"),
		of("vit_low_rank", 0, "vit", "bert",
			"objective.itc.scores=[{kind='gssf',weight=0.5},{kind='cosine',weight=0.25}]",
			"objective.gssf.form=low_rank", "objective.gssf.rank=3"),
		of("clip_attended", 0, "clip", "clip", "model.attention_metric.form=block_diag",
			"model.attention_metric.blocks=2"),
		{"albef_attended", -1, []string{"model.text.fusion_layers=1", "model.attention_metric.form=dense", "model.attention_metric.heads=shared"}},
		{"mtob", 0, dual},
		{"heads", 0, heads},
		{"heads_linear", 0, slices.Concat(heads, []string{"model.heads.layers=0", "model.heads.center=false", "model.head.topology='Ob(4,2)'"})},
		{"albef", -1, []string{"model.text.fusion_layers=1"}},
		{"albef_styles", 0, []string{"model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0", "model.image.style=clip", "model.text.style=clip"}},
	}
}

// Blocks are models with image towers of options, model.image.block and convnet, which few forms hold.
func Blocks() []Case {
	dinov3 := []string{"model.image.block.rotary=centred", "model.image.block.theta=77.0", "model.image.block.positions=false", "model.image.block.layer_scale=true",
		"model.image.eps=1e-5"}
	next := func(name string, more ...string) Case {
		return of(name, 0, "convnet", "bert", slices.Concat([]string{`model.image.convnet.blocks=["patch k3 c8", "cx k7 e32 c8", "cx k7 e32 c8", "down c12", "cx k7 e48 c12"]`,
			"model.image.convnet.final_norm=true", "model.image.convnet.eps=1e-6"}, more)...)
	}
	return []Case{
		next("convnext", "model.image.convnet.layer_scale=true", "model.image.convnet.final_eps=1e-12", "model.image.convnet.activation=gelu"),
		next("convnext_v2", "model.image.convnet.response_norm=true", "model.image.convnet.activation=gelu_tanh"),
		of("dinov3", 0, "block", "bert", slices.Concat(dinov3, []string{"model.image.registers=2"})...),
		of("dinov3_gated", 0, "block", "bert", slices.Concat(dinov3, []string{"model.image.block.gated=true", "model.image.activation=silu"})...),
	}
}

// Find returns the case of a name with further settings.
func Find(t testing.TB, name string, sets ...string) Case {
	t.Helper()
	for _, c := range slices.Concat(Cases(), Blocks()) {
		if c.Name == name {
			c.Sets = slices.Concat(c.Sets, sets)
			return c
		}
	}
	t.Fatalf("no case %q", name)
	return Case{}
}

// Tiny is a model with random parameters and what it makes of a batch.
type Tiny struct {
	export.Model
	Pairs *model.Trainer
	Batch *batch.Batch
}

// New makes the model of a case. Every parameter has values of its own, norms and biases too.
func New(t testing.TB, c Case) *Tiny {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Parse("", nil, slices.Concat(sizes, c.Sets))
	must(err)
	tok, o := Tokenizer(t, c.Pad), model.Options{Vocab: Vocab}
	o.Pad = int(tok.PadRow())
	o.MaskID, _ = tok.ID(tokenizer.MaskToken)
	engine, err := compute.New(compute.Options{Threads: 1})
	must(err)
	t.Cleanup(engine.Close)
	if o.Engine = engine; cfg.Has(section.Stored) {
		tok, o = nil, model.Options{Engine: engine}
	}
	m, err := model.New(cfg, o)
	must(err)
	t.Cleanup(func() { m.Close() })
	x := &Tiny{Model: export.Model{Config: cfg, Tokenizer: tok}, Pairs: m}
	for _, q := range m.Params().List() {
		randomise(q.Name, m.Params().Value(q))
		x.Params = append(x.Params, param(q.Name, q.Shape, m.Params().Value(q)))
		if q.Momentum {
			randomise("twin/"+q.Name, m.Params().MomentumValue(q))
			x.Twins = append(x.Twins, param("momentum/"+q.Name, q.Shape, m.Params().MomentumValue(q)))
		}
	}
	x.Batch = batch.New(Rows)
	r := rng.New(1, "inputs", 0)
	floats := func(n int) []float32 {
		v := make([]float32, Rows*n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	if tok == nil {
		x.Batch.SetFloats(batch.ImageFeatures, floats(cfg.Model.Heads.InImage))
		x.Batch.SetFloats(batch.TextFeatures, floats(cfg.Model.Heads.InText))
		return x
	}
	x.Batch.SetFloats(batch.Images, floats(3*Size*Size))
	lengths, ids := []int32{Words, Words - 2, 3}, make([]int32, Rows*Words)
	for i := range ids {
		switch at, n := i%Words, int(lengths[i/Words]); {
		case at == 0:
			ids[i] = tok.ClsID()
		case at == n-1:
			ids[i] = tok.SepID()
		case at >= n:
			ids[i] = tok.PadID()
		default:
			ids[i] = int32(6 + r.IntN(Vocab-6))
		}
	}
	x.Batch.SetInts(batch.Tokens, ids)
	x.Batch.SetInts(batch.Lengths, lengths)
	return x
}

// param is memory as a parameter.
func param(name string, shape []int, values []float32) weights.Param {
	return weights.Param{Name: name, Shape: shape, Read: func(dst []float32) error { copy(dst, values); return nil }}
}

// randomise fills values: scales and temperatures near 1, variances above it, others near 0.
func randomise(name string, values []float32) {
	r := rng.New(1, name, 0)
	for i := range values {
		if len(values) == 1 {
			values[i] = 0.3 + 0.2*float32(r.Float64())
			continue
		}
		values[i] = 0.25 * float32(r.NormFloat64())
		if strings.HasSuffix(name, "running_var") {
			values[i] = 0.5 + float32(math.Abs(float64(values[i])))
		}
	}
}

// Features are what the model makes of its batch: features of images and texts (Rows, C).
func (x *Tiny) Features(t testing.TB) (image, text []float32) {
	t.Helper()
	_, f := check.Get2(x.Pairs.Image().Encode(t.Context(), x.Batch))(t)
	image = slices.Clone(f)
	_, f = check.Get2(x.Pairs.Text().Encode(t.Context(), x.Batch))(t)
	return image, slices.Clone(f)
}

// Classes are what stands for the rows of its batch before the heads: (Rows, m*D) of images and texts.
func (x *Tiny) Classes(t testing.TB) (image, text []float32) {
	t.Helper()
	f := check.Get(x.Pairs.Image().EncodeClasses(t.Context(), x.Batch))(t)
	image = slices.Clone(f)
	f = check.Get(x.Pairs.Text().EncodeClasses(t.Context(), x.Batch))(t)
	return image, slices.Clone(f)
}

// Inputs are the tensors of the batch and what the model makes of it, under the names of transformers.
func (x *Tiny) Inputs(t testing.TB) []safetensors.Tensor {
	t.Helper()
	fi, ft := x.Features(t)
	ci, ct := x.Classes(t)
	list := []safetensors.Tensor{
		{Name: "logits", Shape: []int{Rows, Rows}, Data: x.logits(t, fi, ft)},
		{Name: "image_embeds", Shape: []int{Rows, len(fi) / Rows}, Data: fi},
		{Name: "text_embeds", Shape: []int{Rows, len(ft) / Rows}, Data: ft},
		{Name: "image_pooled", Shape: []int{Rows, len(ci) / Rows}, Data: ci},
		{Name: "text_pooled", Shape: []int{Rows, len(ct) / Rows}, Data: ct},
	}
	if folded := x.folded(t, fi); folded != nil {
		list = append(list, safetensors.Tensor{Name: "image_folded", Shape: []int{Rows, len(fi) / Rows}, Data: folded})
	}
	if x.Tokenizer == nil {
		return append(list, x.rows("image_features", batch.ImageFeatures), x.rows("text_features", batch.TextFeatures))
	}
	mask := make([]int64, Rows*Words)
	ids := make([]int64, Rows*Words)
	for i, id := range x.Batch.Ints(batch.Tokens) {
		ids[i] = int64(id)
		if i%Words < int(x.Batch.Ints(batch.Lengths)[i/Words]) {
			mask[i] = 1
		}
	}
	return append(list,
		safetensors.Tensor{Name: "pixel_values", Shape: []int{Rows, 3, Size, Size}, Data: x.Batch.Floats(batch.Images)},
		safetensors.Tensor{Name: "input_ids", Shape: []int{Rows, Words}, Data: ids},
		safetensors.Tensor{Name: "attention_mask", Shape: []int{Rows, Words}, Data: mask})
}

// rows are a column of the batch as a tensor.
func (x *Tiny) rows(name, column string) safetensors.Tensor {
	v := x.Batch.Floats(column)
	return safetensors.Tensor{Name: name, Shape: []int{Rows, len(v) / Rows}, Data: v}
}

// logits are the scores of all pairs (Rows, Rows), by the score of the model where that is a product, times its scale.
func (x *Tiny) logits(t testing.TB, image, text []float32) []float32 {
	scale, bias := 1., 0.
	for _, q := range x.Pairs.Params().List() {
		v := float64(x.Pairs.Params().Value(q)[0])
		switch q.Name {
		case "temperature":
			scale = 1 / v
		case "logit_scale", "siglip/log_scale":
			scale = math.Exp(v)
		case "siglip/bias":
			bias = v
		}
	}
	out := make([]float32, Rows*Rows)
	width := len(image) / Rows
	if folded := x.folded(t, image); folded != nil {
		image = folded
	}
	for i := range out {
		sum := 0.
		for c := range width {
			sum += float64(image[i/Rows*width+c]) * float64(text[i%Rows*width+c])
		}
		out[i] = float32(scale*sum + bias)
	}
	return out
}

// folded are images with the score folded into them, nil where there is nothing to fold.
func (x *Tiny) folded(t testing.TB, image []float32) []float32 {
	s := check.Get(x.Pairs.PairScore())(t)
	if s.Identity() || !s.Folds() {
		return nil
	}
	out := make([]float32, len(image))
	check.OK(t, s.FoldImages(out, image, Rows))
	return out
}

// Tokenizer is a WordPiece tokenizer of Vocab tokens that puts [CLS] and [SEP] around a text, with padding of an id.
// Below 0 it is one with the template albef.
func Tokenizer(t testing.TB, pad int32) *tokenizer.Tokenizer {
	t.Helper()
	names := []string{tokenizer.UnkToken, tokenizer.MaskToken, tokenizer.ClsToken, tokenizer.SepToken}
	names = slices.Insert(names, max(0, int(pad)), tokenizer.PadToken)
	if pad < 0 {
		for i := len(names); i < Vocab; i++ {
			names = append(names, fmt.Sprintf("w%d", i))
		}
		tok := check.Get(tokenizer.New(names, tokenizer.Default()))(t)
		return tok
	}
	vocab := map[string]int{}
	for i, name := range names {
		vocab[name] = i
	}
	for i := len(names); i < Vocab; i++ {
		vocab[fmt.Sprintf("w%d", i)] = i
	}
	special := func(name string) map[string]any {
		return map[string]any{"id": name, "ids": []int{vocab[name]}, "tokens": []string{name}}
	}
	part := func(name string) any { return map[string]any{"SpecialToken": map[string]any{"id": name, "type_id": 0}} }
	text := map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}
	var added []any
	for i, name := range names {
		added = append(added, map[string]any{"id": i, "content": name, "special": true, "single_word": false,
			"lstrip": false, "rstrip": false, "normalized": false})
	}
	b := check.Get(json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": map[string]any{"type": "Lowercase"}, "pre_tokenizer": map[string]any{"type": "Whitespace"},
		"decoder":        nil,
		"model":          map[string]any{"type": "WordPiece", "unk_token": tokenizer.UnkToken, "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
		"post_processor": map[string]any{"type": "TemplateProcessing", "single": []any{part(tokenizer.ClsToken), text, part(tokenizer.SepToken)}, "pair": []any{text, text}, "special_tokens": map[string]any{tokenizer.ClsToken: special(tokenizer.ClsToken), tokenizer.SepToken: special(tokenizer.SepToken)}},
	}))(t)
	tok := check.Get(tokenizer.Parse(b))(t)
	return tok
}
