package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/weights"
)

// written writes a model to a folder of the test.
func written(t *testing.T, x *exporttest.Tiny, o export.Options) export.Written {
	t.Helper()
	o.Out = filepath.Join(t.TempDir(), "out")
	return check.Get(export.Write(x.Model, o))(t)
}

// numbers reads a parameter.
func numbers(t *testing.T, p weights.Param) []float32 {
	t.Helper()
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	x := make([]float32, n)
	check.OK(t, p.Read(x))
	return x
}

// How many tokens a text has is read back where the form has a place for it, and told where it has none: with more of them long texts, and of
// SigLIP all texts, have other features.
func TestLengthOfTexts(t *testing.T) {
	for _, c := range []struct {
		name, to, want string
		told           bool
	}{
		{"siglip", export.HF, "data.tokens=4", false}, {"clip", export.HF, "data.tokens=4", false}, {"albef", export.ALBEF, "data.tokens=4", false},
		{"clip", export.OpenCLIP, "data.tokens=6", true},
	} {
		w := written(t, exporttest.New(t, exporttest.Find(t, c.name, "data.tokens=4")), export.Options{To: c.to})
		m := check.Get(weights.Open(w.Path))(t)
		var got []string
		for _, s := range m.Settings() {
			if s.Key == "data.tokens" {
				got = append(got, s.String())
			}
		}
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s to %s: settings %v, want %s", c.name, c.to, got, c.want)
		}
		if told := strings.Contains(strings.Join(w.Notes, " "), "texts are cut to 4 tokens"); told != c.told {
			t.Errorf("%s to %s: notes %q", c.name, c.to, w.Notes)
		}
		m.Close()
	}
}

// What is written is read back as the same parameters, bit for bit, and as settings of the same model.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name     string
		o        export.Options
		class    string
		family   string
		settings string // some of them
	}{
		{"clip", export.Options{To: export.HF}, "CLIPModel", "clip", `model.image.activation="quick_gelu" model.image.heads=2 model.text.heads=2 model.image.resize="squash"`},
		{"clip_gelu", export.Options{To: export.HF}, "CLIPModel", "clip", `model.image.activation="gelu" model.text.activation="gelu"`},
		{"clip_tanh", export.Options{To: export.HF, Side: "image"}, "CLIPVisionModelWithProjection", "clip", `model.image.activation="gelu_tanh" model.image.resize="crop"`},
		{"clip_tanh", export.Options{To: export.HF, Side: "text"}, "CLIPTextModelWithProjection", "clip", `model.text.activation="gelu_tanh"`},
		{"clip_eps", export.Options{To: export.HF}, "CLIPModel", "clip", `model.image.eps=0.001 model.text.eps=0.01`},
		{"clip_eps", export.Options{To: export.OpenCLIP}, "CLIP", "open_clip", `model.image.eps=0.001 model.text.eps=0.01`},
		{"vit_crop", export.Options{To: export.HF, Side: "image"}, "ViTModel", "vit", `model.image.resize="crop" model.image.crop=0.75`},
		{"vit_crop", export.Options{To: export.HF, Side: "text"}, "BertModel", "bert", `model.text.eps=0.001`},
		{"vit_crop", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.resize="crop" model.image.crop=0.75`},
		{"siglip", export.Options{To: export.HF}, "SiglipModel", "siglip", `model.image.pool="attention" model.head.identity="image"`},
		{"siglip_mean", export.Options{To: export.HF, Side: "image"}, "SiglipVisionModel", "siglip", `model.image.pool="mean"`},
		{"siglip_mean", export.Options{To: export.HF, Side: "text"}, "SiglipTextModel", "siglip", `model.text.pool="end"`},
		{"vit_bert", export.Options{To: export.HF, Side: "image"}, "ViTModel", "vit", `model.image.style="vit"`},
		{"vit_bert", export.Options{To: export.HF, Side: "text"}, "BertModel", "bert", `model.text.style="bert" model.text.heads=2`},
		{"vit_mean", export.Options{To: export.HF, Side: "text"}, "BertModel", "bert", `model.text.pool="mean"`},
		{"deit_roberta", export.Options{To: export.HF, Side: "image"}, "ViTModel", "vit", `model.image.style="deit"`},
		{"deit_roberta", export.Options{To: export.HF, Side: "text"}, "RobertaModel", "roberta", `model.text.style="roberta" model.text.positions=6`},
		{"deit_roberta_pad", export.Options{To: export.HF, Side: "text"}, "RobertaModel", "roberta", `model.text.style="roberta" model.text.positions=6`},
		{"deit_distilled", export.Options{To: export.HF, Side: "image"}, "DeiTModel", "vit", `model.image.style="deit" model.image.registers=1`},
		{"dinov2_mpnet", export.Options{To: export.HF, Side: "image"}, "Dinov2Model", "dinov2", `model.image.style="dinov2" model.image.mlp=32`},
		{"dinov2_mpnet", export.Options{To: export.HF, Side: "text"}, "MPNetModel", "mpnet", `model.text.style="mpnet"`},
		{"dinov2_swiglu", export.Options{To: export.HF, Side: "image"}, "Dinov2WithRegistersModel", "dinov2", `model.image.activation="swiglu" model.image.mlp=24 model.image.registers=2`},
		{"convnext", export.Options{To: export.HF, Side: "image"}, "ConvNextModel", "convnext", `model.image.convnet.activation="gelu" model.image.convnet.layer_scale=true model.image.convnet.final_eps=1e-12`},
		{"convnext_v2", export.Options{To: export.HF, Side: "image"}, "ConvNextV2Model", "convnext", `model.image.convnet.activation="gelu_tanh" model.image.convnet.response_norm=true`},
		{"dinov3", export.Options{To: export.HF, Side: "image"}, "DINOv3ViTModel", "dinov3", `model.image.registers=2 model.image.block.rotary="centred" model.image.block.theta=77`},
		{"dinov3_gated", export.Options{To: export.HF, Side: "image"}, "DINOv3ViTModel", "dinov3", `model.image.activation="silu" model.image.block.gated=true`},
		{"resnet", export.Options{To: export.HF, Side: "image"}, "ResNetModel", "resnet_hf", `model.image.resnet.depth=18 model.image.resnet.width=2`},
		{"albef", export.Options{To: export.HF, Side: "text"}, "BertModel", "bert", `model.text.layers=2 model.text.fusion_layers=0`},
		{"clip", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="clip" model.image.activation="quick_gelu"`},
		{"siglip", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="siglip" model.image.pool="attention" model.image.activation="gelu_tanh"`},
		{"siglip_registers", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="siglip" model.image.pool="attention" model.image.registers=2`},
		{"clip_attention", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="clip" model.image.pool="attention"`},
		{"vit_mean", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="vit" model.image.pool="mean" model.image.heads=2`},
		{"vit_registers", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.registers=3 model.image.activation="gelu_tanh"`},
		{"deit_distilled", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.registers=1`},
		{"dinov2_swiglu", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="dinov2" model.image.activation="swiglu" model.image.registers=2`},
		{"dinov2_mean", export.Options{To: export.Timm}, "VisionTransformer", "timm", `model.image.style="dinov2" model.image.pool="mean"`},
		{"clip", export.Options{To: export.OpenCLIP}, "CLIP", "open_clip", `model.image.activation="quick_gelu" model.image.heads=2 model.image.resize="squash"`},
		{"clip_gelu", export.Options{To: export.OpenCLIP}, "CLIP", "open_clip", `model.text.activation="gelu"`},
		{"albef", export.Options{To: export.ALBEF}, "ALBEF", "albef", `model.text.fusion_layers=1 model.image.heads=2 model.text.heads=2`},
	} {
		x := exporttest.New(t, exporttest.Find(t, c.name))
		w := written(t, x, c.o)
		what := c.name + " to " + c.o.To + " " + c.o.Side
		if w.Class != c.class {
			t.Errorf("%s: class %s, want %s", what, w.Class, c.class)
		}
		m, err := weights.Open(w.Path)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if m.Family != c.family {
			t.Errorf("%s: family %s, want %s", what, m.Family, c.family)
		}
		compared := 0
		for _, p := range slices.Concat(x.Params, x.Twins) {
			if !m.Has(p.Name) {
				continue
			}
			compared++
			want, got := numbers(t, p), make([]float32, len(numbers(t, p)))
			if err := m.Read(p.Name, p.Shape, got); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			same := slices.Equal(got, want)
			if p.Name == "temperature" && c.family != "albef" { // of a logarithm
				same = math.Abs(float64(got[0]-want[0])) < 1e-6
			}
			if !same {
				t.Errorf("%s: %s is another", what, p.Name)
			}
		}
		r := m.Report()
		if compared == 0 || len(r.Missing)+len(r.Unexpected)+len(r.Resampled)+len(r.Cut) > 0 {
			t.Errorf("%s: %d parameters, %+v", what, compared, r)
		}
		var settings []string
		for _, s := range m.Settings() {
			settings = append(settings, s.String())
		}
		for s := range strings.FieldsSeq(c.settings) {
			if !slices.Contains(settings, s) {
				t.Errorf("%s: settings %v lack %s", what, settings, s)
			}
		}
		m.Close()
	}
}

// Whole words are refused with the forms that need no tokenizer.
func TestWholeWords(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "vit_bert"))
	x.Tokenizer = check.Get(tokenizer.LearnWords(slices.Values([]string{"a dog", "a cat"}), 100, 1))(t)
	const why = `data.vocab_kind = "words" cannot be told to %s: whole words are cut as NLTK does, which readers of tokenizer.json cannot: use %s--to geoalign`
	for _, c := range []struct{ to, side, want string }{
		{export.ONNX, "", fmt.Sprintf(why, export.ONNX, "--side image or ")}, {export.HF, "text", fmt.Sprintf(why, export.HF, "")}, {export.HF, "image", ""}, {export.Geoalign, "", ""},
	} {
		_, err := export.Write(x.Model, export.Options{To: c.to, Side: c.side, Out: filepath.Join(t.TempDir(), "out")})
		refused := (*export.RefusedError)(nil)
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) || refused.Error() != c.want) {
			t.Errorf("%s of side %q: %v, want %s", c.to, c.side, err, c.want)
		}
	}
}

// RoBERTa and MPNet of transformers number positions by the id of padding: a token of it around a text would have the position of none.
func TestPaddingAroundTexts(t *testing.T) {
	const want = `data.vocab = "" cannot be told to hf: its RoBERTa and MPNet number no position where the token of padding stands, and this tokenizer puts it around every text: use --to onnx or --to geoalign`
	for name, want := range map[string]string{"deit_roberta": want, "dinov2_mpnet": want, "vit_bert": ""} {
		x := exporttest.New(t, exporttest.Find(t, name))
		b, err := x.Tokenizer.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var f map[string]any
		check.OK(t, json.Unmarshal(b, &f))
		f["padding"] = map[string]any{"strategy": "BatchLongest", "direction": "Right", "pad_id": x.Tokenizer.SepID(), "pad_token": tokenizer.SepToken}
		b = check.Get(json.Marshal(f))(t)
		if x.Tokenizer, err = tokenizer.Parse(b); err != nil || x.Tokenizer.PadID() != x.Tokenizer.SepID() {
			t.Fatalf("no tokenizer that pads with the end: %v", err)
		}
		_, err = export.Write(x.Model, export.Options{To: export.HF, Side: "text", Out: filepath.Join(t.TempDir(), "out")})
		refused := (*export.RefusedError)(nil)
		if want == "" && err != nil || want != "" && (!errors.As(err, &refused) || refused.Error() != want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// timm resizes to floor(size / crop_pct), which is the side that images are resized to here, also where the quotient of the
// numbers is a little less.
func TestTimmResizes(t *testing.T) {
	for _, c := range [][2]int{{12, 12}, {12, 16}, {48, 59}, {96, 118}, {192, 225}, {224, 256}, {384, 501}} {
		x := exporttest.New(t, exporttest.Find(t, "vit_bert", fmt.Sprintf("model.image.size=%d", c[0]), fmt.Sprintf("model.image.crop=%v", float64(c[0])/float64(c[1]))))
		w := written(t, x, export.Options{To: export.Timm})
		text := check.Get(os.ReadFile(filepath.Join(w.Path, "config.json")))(t)
		var f struct {
			Pretrained struct {
				Crop float64 `json:"crop_pct"`
			} `json:"pretrained_cfg"`
		}
		check.OK(t, json.Unmarshal(text, &f))
		there, here := math.Floor(float64(c[0])/f.Pretrained.Crop), encoders.ImageOptions{Size: c[0], Crop: f.Pretrained.Crop}.Resized()
		if there != float64(c[1]) || here != c[1] || x.Config.Model.Image.Resized() != c[1] {
			t.Errorf("crop_pct %v of images of %d pixels: resized to %v by timm and to %d by what is read back, want %d", f.Pretrained.Crop, c[0], there, here, c[1])
		}
	}
}

// Keys of the files that other programs read and this one does not: reading back says nothing of them.
func TestKeysOfOtherPrograms(t *testing.T) {
	for _, c := range []struct {
		name string
		sets []string
		o    export.Options
		file string
		want map[string]string // by their paths
	}{
		{"albef", nil, export.Options{To: export.ALBEF}, "config_bert.json", map[string]string{"type_vocab_size": "2", "hidden_act": "gelu", "model_type": "bert"}},
		{"clip", nil, export.Options{To: export.Timm}, "config.json", map[string]string{"num_classes": "0", "pretrained_cfg.num_classes": "0", "pretrained_cfg.input_size": "[3 12 12]", "pretrained_cfg.crop_mode": "squash"}},
		{"clip", nil, export.Options{To: export.HF}, "config.json", map[string]string{"text_config.bos_token_id": "3", "text_config.eos_token_id": "4"}},
		{"vit_bert", []string{"model.image.crop=0.5"}, export.Options{To: export.HF, Side: "image"}, "preprocessor_config.json", map[string]string{"image_processor_type": "DeiTImageProcessor", "size.height": "24", "crop_size.height": "12", "resample": "3"}},
		{"vit_bert", nil, export.Options{To: export.HF, Side: "image"}, "preprocessor_config.json", map[string]string{"image_processor_type": "ViTImageProcessor", "size.height": "12", "crop_size": "<nil>"}},
		// Tokenizers give a mask too where nothing says other, and SiglipTextModel would hide the padding that it read here.
		{"siglip", nil, export.Options{To: export.HF}, "tokenizer_config.json", map[string]string{"model_input_names": "[input_ids]"}},
		{"siglip", nil, export.Options{To: export.HF, Side: "text"}, "tokenizer_config.json", map[string]string{"model_input_names": "[input_ids]"}},
		{"siglip", []string{"model.text.pool=mean"}, export.Options{To: export.ONNX}, "tokenizer_config.json", map[string]string{"model_input_names": "<nil>"}}, // whose text.onnx has a mask
		{"clip", nil, export.Options{To: export.HF}, "tokenizer_config.json", map[string]string{"model_input_names": "<nil>"}},
		{"resnet", nil, export.Options{To: export.HF, Side: "image"}, "config.json", map[string]string{"layer_type": "basic", "depths": "[2 2 2 2]"}},
	} {
		w := written(t, exporttest.New(t, exporttest.Find(t, c.name, c.sets...)), c.o)
		text := check.Get(os.ReadFile(filepath.Join(w.Path, c.file)))(t)
		var all map[string]any
		check.OK(t, json.Unmarshal(text, &all))
		for path, want := range c.want {
			at := any(all)
			for key := range strings.SplitSeq(path, ".") {
				table, _ := at.(map[string]any)
				at = table[key]
			}
			if got := fmt.Sprint(at); got != want {
				t.Errorf("%s to %s: %s of %s is %s, want %s", c.name, c.o.To, path, c.file, got, want)
			}
		}
	}
}

// The tensors of this module's own form are those of the model.
func TestGeoalign(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "albef"))
	for side, want := range map[string]int{"": len(x.Params), "image": 38, "text": 0} {
		w := written(t, x, export.Options{To: export.Geoalign, Side: side})
		f := check.Get(safetensors.Open(filepath.Join(w.Path, "model.safetensors")))(t)
		defer f.Close()
		n := 0
		for _, p := range x.Params {
			if _, ok := f.Lookup(p.Name); !ok {
				continue
			}
			n++
			if got, err := f.Float32(p.Name); err != nil || !slices.Equal(got, numbers(t, p)) {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		if n != len(f.Tensors()) || n == 0 || side == "" && n != want {
			t.Errorf("side %q: %d tensors of the model's %d", side, n, len(x.Params))
		}
		if hasTokenizer := slices.Contains(w.Files, "tokenizer.json"); hasTokenizer != (side != "image") || !slices.Contains(w.Files, "config.toml") {
			t.Errorf("side %q: files %v", side, w.Files)
		}
	}
}

// What a form cannot hold is refused with the key, its value and forms that can, and leaves nothing.
func TestRefused(t *testing.T) {
	statements := []string{"objective.nlvr.weight=1", "data.kind=nlvr", "data.examples.source=scenes", "objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"}
	for _, c := range []struct {
		name string
		o    export.Options
		sets []string
		want string
	}{
		{"oblique", export.Options{To: export.HF, Side: "image"}, nil, ""}, // without its head
		{"multi", export.Options{To: export.HF, Side: "image"}, nil, `model.head.topology = "Multi(4,2)" cannot be told to hf: its tower has several class tokens: use --to onnx or --to geoalign`},
		{"clip", export.Options{To: export.HF}, []string{"model.head.topology='Ob(4,2)'"}, `model.head.topology = "Ob(4,2)" cannot be told to hf: it compares unit vectors of one sphere: use --to onnx or --side image or --side text or --to geoalign`},
		{"clip", export.Options{To: export.OpenCLIP}, []string{"eval.score=angle"}, `eval.score = "angle" cannot be told to open_clip`},
		{"vit_bert", export.Options{To: export.HF}, nil, `model.text.style = "bert" cannot be told to hf: its classes of dual encoders`},
		{"vit_bert", export.Options{To: export.OpenCLIP}, nil, `model.image.style = "vit" cannot be told to open_clip`},
		{"albef", export.Options{To: export.HF}, nil, `model.text.fusion_layers = 1 cannot be told to hf`},
		{"albef", export.Options{To: export.OpenCLIP}, nil, `model.text.fusion_layers = 1 cannot be told to open_clip: it has no layers in which text attends to images: use --to albef`},
		{"albef", export.Options{To: export.HF}, statements, `it has no layers in which text attends to images: use --side image or --side text or --to geoalign`},
		{"albef", export.Options{To: export.ALBEF}, statements, `read two: use --to hf --side image or --side text or --to onnx or --to geoalign`},
		{"albef_styles", export.Options{To: export.HF}, nil, `model.system = "albef" cannot be told to hf: its heads have a bias`},
		{"mtob", export.Options{To: export.HF, Side: "text"}, nil, `model.text.style = "" cannot be told to hf: its classes have no norm behind the last layer`},
		{"clip", export.Options{To: export.Timm, Side: "text"}, nil, `--side = "text" cannot be told to timm`},
		{"clip", export.Options{To: export.ALBEF}, nil, `model.system = "clip" cannot be told to albef`},
		{"vit_mean", export.Options{To: export.HF, Side: "image"}, nil, `model.image.pool = "mean" cannot be told to hf`},
		{"vit_registers", export.Options{To: export.HF, Side: "image"}, nil, `model.image.registers = 3 cannot be told to hf`},
		{"dinov2_mpnet", export.Options{To: export.HF, Side: "image"}, []string{"model.image.mlp=40"}, `model.image.mlp = 40 cannot be told to hf`},
		{"clip", export.Options{To: export.HF, Side: "text"}, []string{"model.text.pool=mean"}, `model.text.pool = "mean" cannot be told to hf`},
		{"clip", export.Options{To: export.ONNX}, []string{"model.lora.rank=2"}, "model.lora.rank = 2 and model.tuning.ssf = false: no form has adapters, scales and shifts: merge them first"},
		{"clip", export.Options{To: export.OpenCLIP}, []string{"model.tuning.adapter_width=2"}, `model.tuning.adapter_width = 2 cannot be told to open_clip: its layers have no bottlenecks, which no weight can take in: tune by model.lora or model.tuning.ssf for it: use --to geoalign`},
		{"clip", export.Options{To: export.HF}, []string{"model.tuning.prompt_tokens=3"}, `model.tuning.prompt_tokens = 3 cannot be told to hf`},
		{"clip_eps", export.Options{To: export.Timm}, nil, `model.image.eps = 0.001 cannot be told to timm: its layer norms have the epsilon 1e-05: use --to hf`},
		{"clip", export.Options{To: export.OpenCLIP}, []string{"model.image.crop=0.5"}, `model.image.crop = 0.5 cannot be told to open_clip`},
		{"clip", export.Options{To: export.HF, Side: "text"}, []string{"model.text.style=gru"}, `model.text.style = "gru" cannot be told to hf: its towers have no recurrent layers: use --to geoalign`},
		{"clip", export.Options{To: export.ONNX}, []string{"model.text.style=gru"}, `model.text.style = "gru" cannot be told to onnx: recurrent layers are written in no other form: use --to geoalign`},
		{"clip", export.Options{To: export.OpenCLIP}, []string{"model.text.style=gru"}, `model.text.style = "gru" cannot be told to open_clip`},
		{"clip", export.Options{To: export.HF}, []string{"model.text.style=gru"}, `model.text.style = "gru" cannot be told to hf`},
		{"dinov3", export.Options{To: export.HF, Side: "image"}, []string{"model.image.block.qk_norm=true"}, `model.image.style = "block" cannot be told to hf: of layers of model.image.block its DINOv3ViTModel has those of DINOv3`},
		{"convnext", export.Options{To: export.HF, Side: "image"}, []string{"model.image.convnet.layer_scale=false"}, `of networks of convolutions its classes ConvNextModel and ConvNextV2Model have`},
		{"convnext", export.Options{To: export.HF, Side: "image"}, []string{`model.image.convnet.blocks=["patch k3 c8", "cx k5 e32 c8"]`}, `of networks of convolutions its classes`},
		{"convnext", export.Options{To: export.Timm}, nil, "it has no such network of convolutions"},
		{"dinov3", export.Options{To: export.Timm}, nil, `model.image.style = "block" cannot be told to timm`},
		{"clip", export.Options{To: export.HF}, []string{"model.text.style=coca", "model.text.positions=7"}, `model.text.style = "coca" cannot be told to hf: its towers have no token behind the words of a text: use --to geoalign`},
		{"clip", export.Options{To: export.ONNX}, []string{"model.text.style=coca", "model.text.positions=7"}, `model.text.style = "coca" cannot be told to onnx`},
		{"clip", export.Options{To: export.OpenCLIP}, []string{"model.head.identity=text", `model.head.dense=["text 8 nobias"]`}, `cannot be told to open_clip: its heads are one linear layer`},
		{"clip_gssf", export.Options{To: export.HF}, nil, `eval.score = "gssf" cannot be told to hf: it compares pairs by their cosine: use --to onnx or --side image or --side text or --set eval.score=cosine`},
		{"clip_gssf", export.Options{To: export.OpenCLIP}, nil, `eval.score = "gssf" cannot be told to open_clip`},
		{"clip_gssf", export.Options{To: export.HF, Side: "image"}, nil, `eval.score = "gssf" cannot be told to hf: the score reads features of unit length, and this class gives them before their norm: use --to onnx or --set eval.score=cosine`},
		{"clip_gssf", export.Options{To: export.HF, Side: "text"}, nil, ""},
		{"clip_gssf", export.Options{To: export.HF, Side: "image"}, []string{"eval.score=cosine"}, ""},
		{"clip_mlp", export.Options{To: export.HF}, nil, `model.head.style = "mlp" cannot be told to hf: its heads are one linear layer: use --to onnx or --side image or --side text or --to geoalign`},
		{"clip_tanh_head", export.Options{To: export.HF}, nil, `model.head.style = "tanh" cannot be told to hf: its heads are one linear layer`},
		{"clip_tanh_head", export.Options{To: export.HF, Side: "text"}, nil, ""}, // without its head
		{"vit_bert", export.Options{To: export.ONNX}, []string{"model.text.pool=first_last"}, `model.text.pool = "first_last" cannot be told to onnx`},
		{"vit_bert", export.Options{To: export.HF, Side: "text"}, []string{"model.text.pool=first_last"}, `model.text.pool = "first_last" cannot be told to hf`},
		{"clip_mlp", export.Options{To: export.OpenCLIP}, nil, `model.head.style = "mlp" cannot be told to open_clip`},
		{"siglip_mean", export.Options{To: export.HF, Side: "text"}, []string{"model.head.style=mlp"}, `model.head.style = "mlp" cannot be told to hf`},
		{"clip_mlp", export.Options{To: export.HF, Side: "image"}, nil, ""}, // without its head
		{"resnet", export.Options{To: export.HF}, nil, `model.image.style = "resnet" cannot be told to hf: its image tower is a vision transformer: use --side image or --side text or --to timm or --to onnx`},
		{"resnet", export.Options{To: export.OpenCLIP}, nil, `model.image.style = "resnet" cannot be told to open_clip`},
		{"resnet", export.Options{To: export.Timm}, nil, `model.image.resnet.width = 2 cannot be told to timm: its stem has 64 channels: use --to hf or --to onnx`},
		{"resnet_small", export.Options{To: export.HF, Side: "image"}, nil, `model.image.resnet.small_stem = true cannot be told to hf`},
		{"clip", export.Options{To: "gguf"}, nil, `there is no form "gguf": use geoalign, hf,`},
		{"clip", export.Options{To: export.HF, Side: "both"}, nil, `no side "both": use image or text`},
	} {
		x := exporttest.New(t, exporttest.Find(t, c.name, c.sets...))
		c.o.Out = filepath.Join(t.TempDir(), "out")
		_, err := export.Write(x.Model, c.o)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s to %s: %v", c.name, c.o.To, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v\nwant %s", c.name, c.o.To, err, c.want)
		}
		if refused := (*export.RefusedError)(nil); errors.As(err, &refused) && refused.Key == "" {
			t.Errorf("%v names no key", err)
		}
		if list, _ := os.ReadDir(filepath.Dir(c.o.Out)); len(list) > 0 {
			t.Errorf("%s to %s: it left %v", c.name, c.o.To, list)
		}
	}
}

// A folder that cannot be written, has something in it, or a parameter that cannot be read leave nothing half-written.
func TestNothingHalfWritten(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "clip"))
	for name, place := range map[string]func(t *testing.T, dir string) (out, want string){
		"full folder": func(t *testing.T, dir string) (string, string) {
			out := filepath.Join(dir, "out")
			check.OK(t, errors.Join(os.Mkdir(out, 0o777), os.WriteFile(filepath.Join(out, "a"), nil, 0o666)))
			return out, "is not empty (it has a): choose another folder with --out"
		},
		"the current folder": func(t *testing.T, dir string) (string, string) { // as a mount point, it cannot give way to another
			t.Chdir(dir)
			return ".", "choose a folder that is not there yet with --out"
		},
		"below a file": func(t *testing.T, dir string) (string, string) {
			check.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
			return filepath.Join(dir, "file", "out"), "choose another folder with --out"
		},
		"read-only folder": func(t *testing.T, dir string) (string, string) {
			if os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			check.OK(t, os.Chmod(dir, 0o555))
			return filepath.Join(dir, "out"), "choose another folder with --out"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out, want := place(t, dir)
			before := check.Get(os.ReadDir(dir))(t)
			_, err := export.Write(x.Model, export.Options{To: export.HF, Out: out})
			after, _ := os.ReadDir(dir)
			if err == nil || !strings.Contains(err.Error(), want) || len(after) != len(before) {
				t.Errorf("%v, want %s; before %v, after %v", err, want, before, after)
			}
		})
	}
	full := errors.New("no space left on device")
	for _, form := range []string{export.HF, export.Geoalign, export.ONNX} {
		x := exporttest.New(t, exporttest.Find(t, "clip"))
		x.Params[len(x.Params)/2].Read = func([]float32) error { return full }
		dir := t.TempDir()
		_, err := export.Write(x.Model, export.Options{To: form, Out: filepath.Join(dir, "out")})
		if list, _ := os.ReadDir(dir); !errors.Is(err, full) || len(list) > 0 {
			t.Errorf("%s: %v, and it left %v", form, err, list)
		}
	}
}

// A link to an empty folder stays one, and the files are where it leads.
func TestFolderBehindLink(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "clip"))
	dir := t.TempDir()
	target, link := filepath.Join(dir, "disk", "out"), filepath.Join(dir, "link")
	check.OK(t, errors.Join(os.MkdirAll(target, 0o777), os.Symlink(target, link)))
	w, err := export.Write(x.Model, export.Options{To: export.HF, Out: link})
	if err != nil || w.Path != link {
		t.Fatalf("%s, %v", w.Path, err)
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	if _, err := os.Stat(filepath.Join(target, "config.json")); err != nil {
		t.Error(err)
	}
}

// Heads over stored features and a map in closed form have forms of their own.
func TestStoredFeatures(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "heads"))
	w := written(t, x, export.Options{To: export.Geoalign, Side: "text"})
	f := check.Get(safetensors.Open(filepath.Join(w.Path, "model.safetensors")))(t)
	defer f.Close()
	for _, info := range f.Tensors() {
		if !strings.HasPrefix(info.Name, "text/") && !strings.HasPrefix(info.Name, "text_head/") {
			t.Errorf("the text side has %s", info.Name)
		}
	}
	if _, ok := f.Lookup("text_head/fc1/weight"); !ok {
		t.Error("the text side has no head")
	}
	_, err := export.Write(x.Model, export.Options{To: export.HF, Out: filepath.Join(t.TempDir(), "out")})
	if want := `model.system = "heads" cannot be told to hf: heads over stored features have no towers: use --to onnx or --to geoalign`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	m := x.Model
	m.Config.Model.System = "align"
	_, err = export.Write(m, export.Options{To: export.ONNX, Out: filepath.Join(t.TempDir(), "out")})
	if want := `model.system = "align" cannot be told to onnx`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
