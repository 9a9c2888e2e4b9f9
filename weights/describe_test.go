package weights

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// copied is a copy of a golden folder in which files are changed; empty text removes one.
func copied(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	check.OK(t, os.CopyFS(folder, os.DirFS(filepath.Join("testdata", name))))
	for _, file := range []string{"expected.safetensors"} {
		check.OK(t, os.Remove(filepath.Join(folder, file)))
	}
	for file, text := range files {
		if text != "" {
			write(t, folder, file, []byte(text))
		} else if err := os.Remove(filepath.Join(folder, file)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// config is a golden config.json in which a text is replaced.
func config1(t *testing.T, name, old, now string) string {
	t.Helper()
	text := check.Get(os.ReadFile(filepath.Join("testdata", name, "config.json")))(t)
	if !strings.Contains(string(text), old) {
		t.Fatalf("config.json of %s has no %s", name, old)
	}
	return strings.Replace(string(text), old, now, 1)
}

// openCLIPConfig1 is config1 of an open_clip_config.json.
func openCLIPConfig1(t *testing.T, name, old, now string) string {
	t.Helper()
	text := check.Get(os.ReadFile(filepath.Join("testdata", name, "open_clip_config.json")))(t)
	if !strings.Contains(string(text), old) {
		t.Fatalf("open_clip_config.json of %s has no %s", name, old)
	}
	return strings.Replace(string(text), old, now, 1)
}

// openCLIPVision1 are the files beside open_clip with further arguments of its image tower.
func openCLIPVision1(arguments string) map[string]string {
	return map[string]string{"open_clip_config.json": `{"model_cfg": {"text_cfg": {"heads": 2}, "vision_cfg": {"head_width": 4, ` + arguments + `}}}`}
}

// modules is a modules.json of sentence-transformers: a transformer and what stands behind it.
func modules(behind ...string) string {
	list := []string{`{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}`}
	for i, kind := range behind {
		list = append(list, fmt.Sprintf(`{"idx": %d, "name": "%[1]d", "path": "%[1]d_%[2]s", "type": "sentence_transformers.models.%[2]s"}`, i+1, kind))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// What the files beside the weights say is heard, and what cannot be is refused with its place.
func TestFilesBeside(t *testing.T) {
	const prepare, words = "preprocessor_config.json", "tokenizer_config.json"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // in the settings and notes, or in the error
	}{
		{"bert", map[string]string{"1_Pooling/config.json": `{"word_embedding_dimension": 8, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}`}, `model.text.pool="mean"`},
		{"bert", map[string]string{"1_Pooling/config.json": "\ufeff" + `{"word_embedding_dimension": 8, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}`}, `model.text.pool="mean"`},
		{"bert", map[string]string{"1_Pooling/config.json": `{"pooling_mode_mean_sqrt_len_tokens": true}`}, "1_Pooling/config.json has another pooling"},
		{"bert", map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}`}, "than one of cls, mean, max, lasttoken and weightedmean alone (cls, mean): class is taken"},
		{"bert", map[string]string{"1_Pooling/config.json": `{"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}`}, "than one of cls, mean, max, lasttoken and weightedmean alone (max, mean): class is taken"},
		{"bert", map[string]string{"1_Pooling/config.json": `{"pooling_mode_weightedmean_tokens": true}`}, `model.text.pool="weighted_mean"`},
		{"bert", map[string]string{"1_Pooling/config.json": `{"pooling_mode": "mean"}`}, `model.text.pool="mean" bert: `},
		{"bert", map[string]string{"modules.json": modules("WordWeights", "Pooling"), "2_Pooling/config.json": `{"pooling_mode_mean_tokens": true}`}, `model.text.pool="mean"`},
		{"bert", map[string]string{"modules.json": modules("Pooling", "Dense", "Normalize"), "1_Pooling/config.json": `{"pooling_mode_cls_token": true}`}, "modules.json has a module Dense (2_Dense), which is not read"},
		{"bert", map[string]string{"modules.json": `{}`}, "modules.json: it is an object, and a list is read"},
		{"bert", map[string]string{"config.json": ""}, "text tower has: 1 are assumed"},
		{"bert", map[string]string{"config.json": `{"model_type": "bert"}`}, "12 heads do not divide the width 8 of the text tower"}, // those of BertConfig
		{"roberta", map[string]string{"config.json": `{"model_type": "roberta", "num_attention_heads": 2}`}, "model.text.eps=1e-12"},
		{"mpnet", map[string]string{"config.json": `{"model_type": "mpnet"}`}, "model.text.eps=1e-12"},
		{"clip", map[string]string{"config.json": `{"model_type": "clip", "vision_config": {"num_attention_heads": 2}, "text_config": {}}`}, "model.text.heads=8"},
		{"clip", map[string]string{"config.json": `{"model_type": "clip", "text_config": {}}`}, "12 heads do not divide the width 8 of the image tower"},
		{"clip", map[string]string{"config.json": config1(t, "clip", `"text_config": {`, `"text_config_dict": {"num_attention_heads": 4, "hidden_act": "gelu"}, "vision_config_dict": null, "text_config": {`)},
			`model.text.heads=4 model.text.mlp=16 model.text.positions=6 model.text.activation="gelu"`},
		{"clip", map[string]string{"config.json": config1(t, "clip", `"vision_config": {`, `"vision_config_dict": {"num_attention_heads": 4}, "vision_config": {`)}, "model.image.heads=4"},
		{"siglip", map[string]string{"config.json": `{"model_type": "siglip", "vision_config": {"num_attention_heads": 2}}`}, "12 heads do not divide the width 8 of the text tower"},
		{"siglip", map[string]string{"config.json": `{"model_type": "siglip", "text_config": {"num_attention_heads": 2}}`}, "12 heads do not divide the width 8 of the image tower"},
		{"vit", map[string]string{"config.json": `{"model_type": "vit"}`}, "12 heads do not divide the width 8 of the image tower"},
		{"dinov2", map[string]string{"config.json": `{"model_type": "dinov2"}`}, "12 heads do not divide the width 8 of the image tower"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"gelu"`, `"relu"`)}, `hidden_act is "relu", and gelu,`},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"gelu"`, `"gelu_new"`)}, `model.text.activation="gelu_tanh"`},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"model_type": "bert"`, `"model_type": "bert", "position_embedding_type": "relative_key"`)}, `position_embedding_type "relative_key"`},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"is_decoder": false`, `"is_decoder": true`)}, "is_decoder = true"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"type_vocab_size": 2`, `"type_vocab_size": 3`)}, "config.json has type_vocab_size = 3, and the tensors have 2"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"type_vocab_size": 2`, `"type_vocab_size": [2]`)}, "type_vocab_size is a list, want a number"},
		{"bert", map[string]string{"sentence_bert_config.json": `{"max_seq_length": 512}`}, "max_seq_length = 512, and there are 6 positions: texts are cut there"},
		{"bert", map[string]string{"sentence_bert_config.json": `{"max_seq_length": -3}`}, "max_seq_length must be > 0 (got -3)"},
		{"bert", map[string]string{"sentence_bert_config.json": `{"max_seq_length": [5]}`}, "sentence_bert_config.json: max_seq_length is a list, and a number is read"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"hidden_size": 8`, `"hidden_size": 16`)}, "config.json has hidden_size = 16, and the tensors have 8"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"num_hidden_layers": 2`, `"num_hidden_layers": 3`)}, "has num_hidden_layers = 3, and the tensors have 2"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"num_attention_heads": 2`, `"num_attention_heads": 3`)}, "3 heads do not divide the width 8 of the text tower"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"num_attention_heads": 2`, `"num_attention_heads": -2`)}, "-2 heads do not divide"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"model_type": "bert"`, `"model_type": "mt5"`)}, `has model_type "mt5", which is not read: the families`},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"model_type": "bert"`, `"model_type": "swinv2"`)}, `has model_type "swinv2", which has attention within shifted windows`},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"vit_base_patch16_224"`, `"swin_tiny_patch4_window7_224"`)}, `has the architecture "swin_tiny_patch4_window7_224", which has attention within shifted windows`},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"vit_base_patch16_224"`, `"fastvit_mci0"`)}, `has the architecture "fastvit_mci0", which has the blocks of MobileCLIP and FastViT`},
		{"bert", map[string]string{"config.json": config1(t, "bert", `"model_type": "bert"`, `"model_type": "vit"`)}, `has model_type "vit", and `},
		{"bert", map[string]string{"config.json": `{"num_attention_heads": [3, 6, 12]}`}, "config.json: num_attention_heads is a list, and a number is read"},
		{"bert", map[string]string{"config.json": `{"hidden_size": "8"}`}, "config.json: hidden_size is a text, and a number is read"},
		{"bert", map[string]string{"config.json": `{"model_type": "bert", "model_type": "bert"}`}, "is there twice"},
		{"bert", map[string]string{"config.json": config1(t, "bert", `1e-12`, `1e-5`)}, `model.text.pool="class" model.text.eps=1e-05`},
		{"roberta", map[string]string{"config.json": config1(t, "roberta", `"pad_token_id": 1`, `"pad_token_id": 0`)}, "model.text.positions=7 "},
		{"roberta", map[string]string{"config.json": config1(t, "roberta", `"pad_token_id": 1`, `"pad_token_id": -1`)}, "pad_token_id -1, by which positions are numbered, and 1 is read"},
		{"roberta", map[string]string{"config.json": config1(t, "roberta", `"pad_token_id": 1`, `"pad_token_id": 7`)}, "want more than the 8 rows of padding"},
		{"mpnet", map[string]string{"config.json": config1(t, "mpnet", `"pad_token_id": 1`, `"pad_token_id": 0`)}, "pad_token_id 0, by which positions are numbered, and 1 is read"},
		{"vit", map[string]string{"config.json": config1(t, "vit", `"image_size": 12`, `"image_size": [12, 16]`)}, "image_size = 16, and the tensors have 12"},
		{"vit", map[string]string{"config.json": config1(t, "vit", `"image_size": 12`, `"image_size": 14`), prepare: ""}, "images of 14 pixels, which patches of 4 do not divide: 12 are taken, and features differ a little"},
		{"vit", map[string]string{"config.json": config1(t, "vit", `"image_size": 12`, `"image_size": 16`), prepare: ""}, "image_size = 16, and the tensors have 12"},
		{"vit", map[string]string{"config.json": config1(t, "vit", `"image_size": 12`, `"image_size": 11`), prepare: ""}, "image_size = 11, and the tensors have 12"},
		{"timm", map[string]string{"config.json": config1(t, "timm", "3,\n      12,\n      12", "3,\n      14,\n      14")}, "images of 14 pixels, which patches of 4 do not divide: 12 are taken"},
		{"timm", map[string]string{"config.json": config1(t, "timm", "3,\n      12,\n      12", "3,\n      224,\n      224")}, "model.image.size=12 "}, // made for other images than its architecture
		{"timm", map[string]string{"config.json": config1(t, "timm", "3,\n      12,\n      12", "3,\n      8,\n      18")}, "config.json: pretrained_cfg.input_size: images of 8 x 18 are not square"},
		{"timm", map[string]string{"config.json": config1(t, "timm", "\"img_size\": [\n      12,", "\"img_size\": [\n      24,")}, "config.json: model_args.img_size: images of 24 x 12 are not square"},
		{"timm", map[string]string{"config.json": `{"architecture": "vit_base_patch16_224", "model_args": {"num_heads": 2, "img_size": 24}, "pretrained_cfg": {"input_size": [3, 224, 224]}}`}, "images of 24 pixels, and positions are stored for 12: they will be resampled"},
		{"vit", map[string]string{"config.json": config1(t, "vit", `1e-12`, `1e-06`)}, `model.image.style="vit"`},
		{"vit", map[string]string{"config.json": config1(t, "vit", `"image_size": 12`, `"image_size": "a"`)}, `config.json: "\"a\"" is no size`},
		{"vit", map[string]string{prepare: `{"size": {"height": 8, "width": 8}, "resample": 3, "do_normalize": false}`},
			`model.image.mean=[0.0, 0.0, 0.0] model.image.std=[1.0, 1.0, 1.0] model.image.resize="squash" model.image.interpolation="bicubic"`},
		{"vit", map[string]string{prepare: `{"size": 8}`}, "model.image.size=8 model.image.patch=4"},
		{"vit", map[string]string{prepare: `{"size": 8}`}, "positions are stored for 12: they will be resampled"},
		{"vit", map[string]string{prepare: `{"size": 9}`}, "images of 9 pixels, which patches of 4 do not divide: 12 are taken"},
		{"vit", map[string]string{prepare: `{"size": {"shortest_edge": 16}, "crop_size": 12, "do_center_crop": true}`}, `model.image.resize="crop" model.image.interpolation="bilinear" model.image.crop=0.75`},
		{"vit", map[string]string{prepare: `{"size": {"height": 16, "width": 16}, "crop_size": 12, "do_center_crop": true}`}, `model.image.resize="squash" model.image.interpolation="bilinear" model.image.crop=0.75`},
		{"vit", map[string]string{prepare: `{"size": 16, "crop_size": 12, "do_center_crop": true, "feature_extractor_type": "DeiTFeatureExtractor"}`}, `model.image.resize="squash" model.image.interpolation="bilinear" model.image.crop=0.75`},
		{"vit", map[string]string{prepare: `{"size": 16, "crop_size": 12, "do_center_crop": true, "feature_extractor_type": "CLIPFeatureExtractor"}`}, `model.image.resize="crop" model.image.interpolation="bilinear" model.image.crop=0.75`},
		{"vit", map[string]string{prepare: `{"size": {"shortest_edge": 12}, "crop_size": 16, "do_center_crop": true}`}, "images are scaled to 12 and bordered to 16 (size, crop_size)"},
		{"vit", map[string]string{prepare: `{"size": [12, 16]}`}, "images of 12 x 16 are not square"},
		{"vit", map[string]string{prepare: `{"resample": 1}`}, "has resample 1, and 2 (bilinear)"},
		{"vit", map[string]string{prepare: `{"do_resize": false}`}, "preprocessor_config.json has do_resize = false, and images of other sizes"},
		{"clip", map[string]string{prepare: `{"size": null}`}, `model.image.resize="crop"`},
		{"vit", map[string]string{prepare: `{"size": {"longest_edge": 12}}`}, "preprocessor_config.json: images are scaled by their longest side (longest_edge = 12)"},
		{"vit", map[string]string{prepare: `{"size": {"height": 12, "width": 12}, "do_pad": true}`}, "preprocessor_config.json has do_pad = true, and no image gets a border here"},
		{"vit", map[string]string{prepare: `{"do_rescale": false, "rescale_factor": 1}`}, "preprocessor_config.json has do_rescale = false, and values from 0 to 255 are"},
		{"vit", map[string]string{prepare: `{"do_rescale": true, "rescale_factor": 0.00784313725490196}`}, "preprocessor_config.json has rescale_factor = 0.00784313725490196, and values"},
		{"vit", map[string]string{prepare: `{"image_mean": [0.5]}`}, "image_mean has 1 numbers, want 3"},
		{"vit", map[string]string{prepare: `{"image_std": [0.5, 0, 0.5]}`}, "image_std has the number 0"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"interpolation": "bicubic"`, `"interpolation": "bilinear"`)}, `model.image.interpolation="bilinear"`},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"interpolation": "bicubic"`, `"interpolation": "random"`)}, `interpolation is "random"`},
		{"timm", nil, "model.image.crop=0.9"},
		{"timm", map[string]string{"config.json": `{"architecture": "vit_base_patch16_224", "pretrained_cfg": {}}`}, "model.image.mean=[0.485, 0.456, 0.406] model.image.std=[0.229, 0.224, 0.225] model.image.resize=\"crop\" model.image.interpolation=\"bicubic\" model.image.crop=0.875"},
		{"timm", map[string]string{"config.json": `{"architecture": "vit_base_patch16_224", "num_features": 8, "mean": [0.1, 0.2, 0.3], "interpolation": "bilinear", "crop_pct": 0.95}`},
			"model.image.mean=[0.1, 0.2, 0.3] model.image.std=[0.229, 0.224, 0.225] model.image.resize=\"crop\" model.image.interpolation=\"bilinear\" model.image.crop=0.95"},
		{"timm", map[string]string{prepare: `{"image_mean": [0.1, 0.2, 0.3]}`, "open_clip_config.json": `{"preprocess_cfg": {"resize_mode": "squash"}}`}, "model.image.mean=[0.5, 0.5, 0.5] model.image.std=[0.5, 0.5, 0.5] model.image.resize=\"crop\""},
		{"vit", map[string]string{"open_clip_config.json": `{"preprocess_cfg": {"mean": [0.1, 0.2, 0.3]}}`}, "model.image.mean=[0.5, 0.5, 0.5]"},
		{"open_clip", map[string]string{prepare: `{"image_mean": [0.1, 0.2, 0.3]}`}, "model.image.mean=[0.48145466, "},
		{"timm", map[string]string{"config.json": config1(t, "timm", "vit_base_patch16_224", "vit_base_patch16_clip_224")}, "model.image.eps=1e-05"},
		{"timm", map[string]string{"config.json": strings.Replace(config1(t, "timm", "vit_base_patch16_224", "vit_base_patch16_clip_224"), `"in_chans": 3`, `"norm_layer": "layernorm"`, 1)}, `model.image.pool="class" model.image.mean`},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"crop_pct": 0.9`, `"crop_pct": 1.0`)}, `"bicubic" timm: `},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"crop_pct": 0.9`, `"crop_pct": 9`)}, "pretrained_cfg.crop_pct is 9, want a share"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"in_chans": 3`, `"act_layer": "tanh"`)}, `act_layer "tanh" in model_args, and gelu, gelu_tanh`},
		{"timm", map[string]string{"config.json": config1(t, "timm", "3,\n    \"global_pool\": \"token\"", "3,\n    \"global_pool\": \"avg\", \"pool_include_prefix\": true")}, "model.image.block.pool_all=true"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"in_chans": 3`, `"act_layer": "gelu_tanh"`)}, `model.image.activation="gelu_tanh"`},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"vit_base_patch16_224"`, `"vit_pe_core_base_patch16_224"`)}, `model.image.block.rotary="cells" model.image.block.reference=14 model.image.block.offset=1 model.image.block.columns_first=true model.image.block.adjacent=true`},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"vit_base_patch16_224"`, `"vit_small_patch16_rope_mixed_ape_224"`)}, "as timm: its rotary positions are learned (rope_type mixed)"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"in_chans": 3`, `"norm_layer": "rmsnorm"`)}, "norm_layer rmsnorm in model_args, and layernorm is read"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"in_chans": 3`, `"attn_head_dim": 16`)}, "attn_head_dim in model_args"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"vit_base_patch16_224"`, `"vit_base_patch16_rpn_224"`)}, "its norms stand behind attention and MLP"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"in_chans": 3`, `"use_rot_pos_emb": true`)}, "has use_rot_pos_emb in model_args of"},
		{"timm", map[string]string{"config.json": config1(t, "timm", `"vit_base_patch16_224"`, `"vit_small_patch16_dinov3"`)}, `model.image.block.rotary="centred"`},
		{"timm_siglip", map[string]string{"config.json": config1(t, "timm_siglip", `vit_base_patch16_siglip_224`, `vit_so400m_patch16_siglip_256`)}, `model.image.activation="gelu_tanh"`},
		{"resnet_hf", map[string]string{"config.json": config1(t, "resnet_hf", `"downsample_in_bottleneck": false`, `"downsample_in_bottleneck": true`)}, "downsample_in_bottleneck = true: blocks whose first"},
		{"resnet_hf", map[string]string{"config.json": config1(t, "resnet_hf", `"downsample_in_first_stage": false`, `"downsample_in_first_stage": true`)}, "downsample_in_first_stage = true: a first stage"},
		{"resnet_hf", map[string]string{"config.json": config1(t, "resnet_hf", `"hidden_act": "relu"`, `"hidden_act": "gelu"`)}, `hidden_act = "gelu": the networks here have relu`},
		{"resnet_hf", map[string]string{"config.json": config1(t, "resnet_hf", `"embedding_size": 2`, `"embedding_size": 64`)}, "has embedding_size = 64, and the tensors have 2"},
		{"resnet_hf", map[string]string{prepare: `{"size": 40, "crop_pct": 0.875, "feature_extractor_type": "ConvNextFeatureExtractor"}`}, `model.image.resize="crop" model.image.interpolation="bicubic" model.image.crop=0.875`},
		{"resnet_hf", map[string]string{prepare: `{"size": {"shortest_edge": 384}, "crop_pct": 0.875, "image_processor_type": "ConvNextImageProcessor"}`}, "model.image.resize=\"squash\" model.image.interpolation=\"bicubic\" resnet_hf: "},
		{"resnet_hf", map[string]string{prepare: `{"size": {"shortest_edge": 40}, "crop_size": 40, "do_center_crop": true, "image_processor_type": "CLIPImageProcessor"}`}, "model.image.resize=\"crop\" model.image.interpolation=\"bicubic\" model.image.centre=\"down\" resnet_hf: "},
		{"resnet_hf", map[string]string{prepare: `{"size": {"height": 40, "width": 40}, "image_processor_type": "ViTImageProcessor"}`}, "model.image.resize=\"squash\" model.image.interpolation=\"bicubic\" resnet_hf: "},
		{"resnet_hf", map[string]string{prepare: `{"size": {"shortest_edge": 40}, "image_processor_type": "ConvNextImageProcessor"}`}, "model.image.crop=0.875"},
		{"resnet_hf", map[string]string{prepare: `{"size": {"shortest_edge": 40}, "crop_pct": 1.5}`}, "preprocessor_config.json: crop_pct is 1.5, want a share"},
		{"vit", map[string]string{prepare: `{"image_mean": [0.1, 0.2, 0.3]}`, "processor_config.json": `{"processor_class": "CLIPProcessor"}`}, "model.image.mean=[0.1, 0.2, 0.3]"},
		{"vit", map[string]string{prepare: `{"image_mean": [0.1, 0.2, 0.3]}`, "processor_config.json": `{"image_processor": {"image_mean": [0.25, 0.5, 0.75]}}`}, "model.image.mean=[0.25, 0.5, 0.75]"},
		{"vit", map[string]string{prepare: "", "processor_config.json": `{"image_processor": {"crop_pct": 1.5}}`}, "processor_config.json: crop_pct is 1.5, want a share"},
		{"siglip", map[string]string{words: `{"model_max_length": 4}`}, "data.tokens=4 "},
		{"siglip", map[string]string{words: `{"model_max_length": 1000000000000000019884624838656}`}, "data.tokens=6 "},
		{"siglip", map[string]string{words: `{"model_max_length": 0}`}, "data.tokens=6 "},
		{"siglip", map[string]string{words: `{"model_max_length": 7}`}, "data.tokens=6 "},
		{"siglip", map[string]string{words: `{"model_max_length": null}`}, "data.tokens=6 "},
		{"siglip", map[string]string{words: `[]`}, "tokenizer_config.json: json"},
		{"bert", map[string]string{words: "\ufeff" + `{"model_max_length": 4}`}, "data.tokens=4 "},
		{"open_clip", map[string]string{words: `{"model_max_length": 4}`}, "data.tokens=6 "}, // it has its own
		{"open_clip_siglip", map[string]string{"open_clip_config.json": ""}, "as in SigLIP is assumed, whose bias of scores is there"},
		{"open_clip_siglip", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_siglip", `"pool_type": "last"`, `"pool_type": "first"`)},
			`no_causal_mask = true, use_pad_mask = false and pool_type = "first" in text_cfg: no style here reads texts so`},
		{"open_clip_siglip", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_siglip", `"no_causal_mask": true`, `"act_kwargs": {"approximate": "tanh"}, "no_causal_mask": true`)},
			`model.text.activation="gelu_tanh" model.text.pool="end" data.tokens`},
		{"open_clip_siglip", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_siglip", `"eps": 1e-06`, `"eps": 1e-05`)}, `model.text.eps=1e-05`},
		{"open_clip_siglip", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_siglip", `vit_base_patch16_siglip_224`, `vit_giantopt_patch16_siglip_256`)}, "16 heads do not divide the width 8 of the image tower"},
		{"open_clip_vit", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_vit", `vit_base_patch16_224`, `vit_base_patch16_gap_224`)}, "16 heads do not divide the width 8 of the image tower"},
		{"open_clip_vit", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_vit", `"timm_pool": "token",`, ``)}, `model.image.style="block"`},
		{"open_clip_vit", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_vit", `"timm_pool": "token"`, `"timm_pool": ""`)}, `model.image.pool="class"`},
		{"open_clip", map[string]string{"open_clip_config.json": `{"model_cfg": {"text_cfg": {"heads": 4}, "vision_cfg": {"head_width": 8}}, "preprocess_cfg": {"resize_mode": "squash", "interpolation": "bilinear", "size": 8}}`},
			`model.image.size=8 model.image.patch=4 model.image.depth=2 model.image.width=8 model.image.heads=1 model.image.mlp=16 model.image.activation="gelu"`},
		{"open_clip", map[string]string{"open_clip_config.json": `{"model_cfg": {"text_cfg": {"heads": 4}}, "preprocess_cfg": {"resize_mode": "squash", "interpolation": "bilinear"}}`},
			`model.image.resize="squash" model.image.interpolation="bilinear" model.text.style="clip" model.text.layers=2 model.text.fusion_layers=0 model.text.width=8 model.text.heads=4`},
		{"open_clip", openCLIPVision1(`"image_size": [8, 18]`), "open_clip_config.json: vision_cfg.image_size: images of 8 x 18 are not square"},
		{"open_clip", openCLIPVision1(`"image_size": 14`), "images of 14 pixels, which patches of 4 do not divide: 12 are taken"},
		{"open_clip", map[string]string{"open_clip_config.json": `{"model_cfg": {"text_cfg": {"heads": 2}, "vision_cfg": {"head_width": 4, "image_size": 12}}, "preprocess_cfg": {"size": 224}}`}, "model.image.size=12 "},
		{"open_clip", openCLIPVision1(`"pool_type": "tok", "final_ln_after_pool": true`), `model.image.pool="class"`},
		{"open_clip", openCLIPVision1(`"pool_type": "avg", "attentional_pool": false`), `model.image.pool="mean"`},
		{"open_clip", openCLIPVision1(`"pool_type": "avg", "final_ln_after_pool": true`), `pool_type = "avg", final_ln_after_pool = true and attentional_pool = false in vision_cfg: no style`},
		{"open_clip", openCLIPVision1(`"pool_type": "none"`), `pool_type = "none"`},
		{"open_clip", openCLIPVision1(`"attentional_pool": "parallel"`), `attentional_pool = true in vision_cfg`},
		{"open_clip", map[string]string{"open_clip_config.json": `{"model_cfg": {"text_cfg": {"heads": 2, "embed_cls": true}, "vision_cfg": {"head_width": 4}}}`}, "embed_cls = true in text_cfg, and the file has no cls_emb"},
		{"open_clip", map[string]string{"open_clip_config.json": `{"preprocess_cfg": {"resize_mode": "longest"}}`}, `resize_mode is "longest"`},
		{"open_clip", map[string]string{"open_clip_config.json": ""}, "no file says whether the activation is gelu or quick_gelu"},
	} {
		folder := copied(t, c.name, c.files)
		m, err := Open(folder)
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			for _, s := range m.Settings() {
				said += s.String() + " "
			}
			said += m.Report().String()
			m.Close()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s with %v: %s\nwant %s", c.name, c.files, said, c.want)
		}
	}
}

// Of a model of sentence-transformers whose pool and norm are read there is nothing to note.
func TestModulesThatAreRead(t *testing.T) {
	m := open1(t, copied(t, "bert", map[string]string{"modules.json": modules("Pooling", "Dropout", "Normalize"), "1_Pooling/config.json": `{"pooling_mode_mean_tokens": true}`}))
	if len(m.Notes) != 0 {
		t.Error(m.Notes)
	}
}

// A head of masked language modelling whose matrix is not the embeddings of words computes something else than one here: it is left out.
func TestUntiedHead(t *testing.T) {
	for _, c := range []struct{ name, matrix string }{{"bert", "cls.predictions.decoder.weight"}, {"roberta", "lm_head.decoder.weight"}} {
		for _, tied := range []string{"true", "false"} {
			folder := copied(t, c.name, map[string]string{"config.json": config1(t, c.name, `"tie_word_embeddings": true`, `"tie_word_embeddings": `+tied)})
			write(t, folder, "model.safetensors", contents(t, golden(c.name), func(list []safetensors.Tensor) []safetensors.Tensor {
				return append(list, safetensors.Tensor{Name: c.matrix, Shape: []int{24, 8}, Data: make([]float32, 24*8)})
			}))
			m := open1(t, folder)
			if said := strings.Contains(m.Report().String(), "has a matrix of its own (tie_word_embeddings = false, "+c.matrix+")"); m.Has("text/mlm/bias") != (tied == "true") || said == m.Has("text/mlm/dense/weight") {
				t.Errorf("%s with tie_word_embeddings = %s: %v, %s", c.name, tied, m.Names(), m.Report())
			}
		}
	}
}

// One tower of two is a model, by its tensors alone or by config.json, with and without what stands before their names.
func TestOneTower(t *testing.T) {
	for _, c := range []struct{ name, tower, side, prefix string }{
		{"clip", "vision_model.", "image", ""}, {"clip", "text_model.", "text", ""}, {"clip", "vision_model.", "image", "vision_model."},
		{"siglip", "vision_model.", "image", ""}, {"siglip", "text_model.", "text", "text_model."},
		{"open_clip", "visual.", "image", "visual."},
	} {
		m := open1(t, write(t, t.TempDir(), "a.safetensors", contents(t, golden(c.name), func(list []safetensors.Tensor) []safetensors.Tensor {
			var kept []safetensors.Tensor
			for _, x := range list {
				if name, ok := strings.CutPrefix(x.Name, c.tower); ok {
					x.Name = c.prefix + name
					kept = append(kept, x)
				}
			}
			return kept
		})))
		if r := m.Report(); m.Family != c.name || len(r.Missing)+len(r.Unexpected) > 0 {
			t.Errorf("%s of %s is %+v", c.tower, c.name, r)
		}
		for _, s := range m.Settings() {
			if !strings.HasPrefix(s.Key, "model."+c.side+".") && !strings.HasPrefix(s.Key, "model.head.") && s.Key != "data.tokens" || s.Key == "model.head.identity" {
				t.Errorf("%s of %s has the setting %v", c.tower, c.name, s)
			}
		}
	}
}

// Tensors of RoBERTa have the names of BERT's where neither a prefix nor config.json tells them apart: the one token type does, and is told.
func TestBareRoBERTa(t *testing.T) {
	bare := func(name string) *Model {
		return open1(t, write(t, t.TempDir(), "a.safetensors", contents(t, golden(name), func(list []safetensors.Tensor) []safetensors.Tensor {
			var kept []safetensors.Tensor
			for _, x := range list {
				var ok bool
				if x.Name, ok = strings.CutPrefix(x.Name, name+"."); ok {
					kept = append(kept, x)
				}
			}
			return kept
		})))
	}
	const told = "has one token type, as RoBERTa has"
	if notes := strings.Join(bare("roberta").Notes, "\n"); !strings.Contains(notes, told) {
		t.Errorf("of roberta: %q", notes)
	}
	if notes := strings.Join(bare("bert").Notes, "\n"); strings.Contains(notes, told) {
		t.Errorf("of bert: %q", notes)
	}
}

// A folder may have a model in the forms of two programs, each with its configuration, as LAION's have: any of its files is read.
func TestTwoForms(t *testing.T) {
	config := check.Get(os.ReadFile(filepath.Join("testdata", "open_clip", "open_clip_config.json")))(t)
	other := check.Get(os.ReadFile(filepath.Join("testdata", "open_clip", "open_clip_model.safetensors")))(t)
	folder := copied(t, "clip", map[string]string{"open_clip_config.json": string(config), "open_clip_model.safetensors": string(other)})
	if m := open1(t, folder); m.Family != "clip" {
		t.Errorf("%s is of family %s", m.Path(), m.Family)
	}
	if m := open1(t, filepath.Join(folder, "open_clip_model.safetensors")); m.Family != "open_clip" {
		t.Errorf("%s is of family %s", m.Path(), m.Family)
	}
}

// What of open_clip is not read is told: towers of other programs, and projections that no head here is.
func TestOtherTowersOfOpenCLIP(t *testing.T) {
	config := openCLIPConfig1(t, "open_clip_vit", "vit_base_patch16_224", "convnext_base")
	only := func(prefix string, more ...safetensors.Tensor) string {
		return string(contents(t, golden("open_clip_vit"), func(list []safetensors.Tensor) []safetensors.Tensor {
			list = slices.DeleteFunc(list, func(x safetensors.Tensor) bool { return !strings.HasPrefix(x.Name, prefix) })
			return append(list, more...)
		}))
	}
	m := open1(t, copied(t, "open_clip_vit", map[string]string{"open_clip_config.json": config, "open_clip_model.safetensors": only("text.", float("visual.trunk.stem.0.weight", 1))}))
	if r := m.Report().String(); !strings.Contains(r, "the image tower is convnext_base of timm, which is not read") || !strings.Contains(r, "1 not known: visual.trunk.stem.0.weight") {
		t.Error(r)
	}
	words := openCLIPConfig1(t, "open_clip_vit", `"text_cfg": {`, `"text_cfg": {"hf_model_name": "xlm-roberta-base",`)
	m = open1(t, copied(t, "open_clip_vit", map[string]string{"open_clip_config.json": words, "open_clip_model.safetensors": only("visual.")}))
	if r := m.Report().String(); !strings.Contains(r, "the text tower is xlm-roberta-base of Hugging Face inside open_clip") {
		t.Error(r)
	}
	m = open1(t, copied(t, "open_clip_vit", map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_vit", "vit_base_patch16_224", "vit_pe_core_base_patch16_224")}))
	if !slices.ContainsFunc(m.Settings(), func(s Setting) bool { return s.String() == `model.image.block.rotary="cells"` }) {
		t.Errorf("a Perception Encoder: %v", m.Settings())
	}
	folder := copied(t, "open_clip_vit", map[string]string{"open_clip_model.safetensors": only("", float("visual.head.proj.bias", 6))})
	check.Fails(Open(folder))(t, "as open_clip_timm: its projections have a bias")
}

// What stands for an image in timm depends on its pool and on the place of the last norm: what no style has is a note, and of a dual encoder
// something that makes its features others. Layers that no style has are refused.
func TestPoolsOfTimm(t *testing.T) {
	for _, c := range []struct {
		name, pool string
		renamed    [2]string // a tensor with the names of others
		more       []safetensors.Tensor
		want       string // in the settings and notes, or in the error
	}{
		{"timm", "token", [2]string{"norm.", "fc_norm."}, nil, `model.image.pool="class"`},
		{"timm", "", [2]string{"norm.", "fc_norm."}, nil, `model.image.pool="mean"`},
		{"timm", "avg", [2]string{"norm.", "fc_norm."}, nil, `model.image.pool="mean"`},
		{"timm", "avg", [2]string{}, nil, `model.image.pool="mean"`},
		{"timm", "avg", [2]string{}, nil, `model.image.style="block"`},
		{"timm", "avgmax", [2]string{"norm.", "fc_norm."}, nil, `note: an image is pooled by "avgmax": class is taken`},
		{"timm_registers", "avg", [2]string{}, nil, `model.image.pool="mean"`},
		{"timm_registers", "avg", [2]string{"norm.", "fc_norm."}, nil, "model.image.block.final_norm=false model.image.block.pool_norm=true model.image.block.layer_scale=true"},
		{"timm", "", [2]string{"patch_embed.proj.bias", "other"}, []safetensors.Tensor{float("norm_pre.weight", 8), float("norm_pre.bias", 8)}, `model.image.style="clip"`},
		{"timm", "", [2]string{"patch_embed.proj.bias", "other"}, []safetensors.Tensor{float("norm_pre.weight", 8), float("norm_pre.bias", 8)}, `model.image.eps=1e-06`},
		{"timm_siglip", "map", [2]string{"norm.", "fc_norm."}, nil, "model.image.block.class_token=false model.image.block.final_norm=false model.image.block.pool_norm=true"},
		{"timm", "", [2]string{}, []safetensors.Tensor{float("norm_pre.weight", 8), float("norm_pre.bias", 8)}, "model.image.block.first_norm=true"},
		{"timm_registers", "", [2]string{}, []safetensors.Tensor{float("norm_pre.weight", 8), float("norm_pre.bias", 8)}, "model.image.block.first_norm=true model.image.block.layer_scale=true"},
		{"timm", "", [2]string{"norm.", "other."}, nil, "it has no norm.weight"},
		{"timm", "", [2]string{"blocks.1.attn.qkv.bias", "other"}, nil, "it lacks what image/blocks/01/attn/qkv/bias is made of, which other blocks have"},
		{"timm", "", [2]string{"pos_embed", "other"}, nil, "it has no positions of patches (pos_embed)"},
		{"timm_siglip", "map", [2]string{}, []safetensors.Tensor{float("cls_token", 1, 1, 8)}, `model.image.style="vit" model.image.size=12 model.image.patch=4 model.image.depth=2 model.image.width=8 model.image.heads=2 model.image.mlp=16 model.image.activation="gelu" model.image.pool="attention"`},
		{"timm_siglip", "map", [2]string{"patch_embed.proj.bias", "other"}, []safetensors.Tensor{float("norm_pre.weight", 8), float("norm_pre.bias", 8), float("cls_token", 1, 1, 8)}, `model.image.style="clip"`},
		{"open_clip_vit", "avg", [2]string{}, nil, `model.image.style="block"`},
		{"open_clip_vit", "avg", [2]string{"visual.trunk.norm.", "visual.trunk.fc_norm."}, nil, `model.image.pool="mean"`},
		{"open_clip_vit", "token", [2]string{"visual.head.proj.", "visual.head.mlp.fc2."}, []safetensors.Tensor{float("visual.head.mlp.fc1.weight", 8, 8), float("visual.head.mlp.fc1.bias", 8)}, `model.head.dense=["image 8 gelu", "image 6 nobias"]`},
	} {
		files := map[string]string{filepath.Base(golden(c.name)): string(contents(t, golden(c.name), func(list []safetensors.Tensor) []safetensors.Tensor {
			for i, x := range list {
				if rest, ok := strings.CutPrefix(x.Name, c.renamed[0]); ok && c.renamed[0] != "" {
					list[i].Name = c.renamed[1] + rest
				}
			}
			return append(list, c.more...)
		}))}
		if strings.HasPrefix(c.name, "open_clip") {
			files["open_clip_config.json"] = openCLIPConfig1(t, c.name, `"timm_pool": "token"`, `"timm_pool": "`+c.pool+`"`)
		} else if c.pool != "map" {
			files["config.json"] = config1(t, c.name, "3,\n    \"global_pool\": \"token\"", "3,\n    \"global_pool\": \""+c.pool+"\"")
		}
		m, err := Open(copied(t, c.name, files))
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			for _, s := range m.Settings() {
				said += s.String() + " "
			}
			said += m.Report().String()
			if (len(m.Unlike) > 0) != strings.HasPrefix(c.want, "note: ") {
				t.Errorf("%s with pool %q: %q", c.name, c.pool, m.Unlike)
			}
			m.Close()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s with pool %q, %v and %d tensors more: %s\nwant %s", c.name, c.pool, c.renamed, len(c.more), said, c.want)
		}
	}
}

// A tower with a norm before its blocks and a pool by attention is a Perception Encoder where no file names another architecture.
func TestRotaryByTensors(t *testing.T) {
	tower := string(contents(t, golden("timm_siglip"), func(list []safetensors.Tensor) []safetensors.Tensor {
		for i, x := range list {
			if x.Name == "patch_embed.proj.bias" {
				list[i].Name = "other"
			}
		}
		return append(list, float("norm_pre.weight", 8), float("norm_pre.bias", 8), float("cls_token", 1, 1, 8))
	}))
	for name, want := range map[string]string{`"architecture": "vit_base_patch16_siglip_224",`: "", "": "its attention turns queries and keys by the places of patches"} {
		config := config1(t, "timm_siglip", `"architecture": "vit_base_patch16_siglip_224",`, name)
		m, err := Open(copied(t, "timm_siglip", map[string]string{filepath.Base(golden("timm_siglip")): tower, "config.json": config}))
		if err == nil {
			m.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %q", name, err, want)
		}
	}
}

// The files of a tokenizer are found.
func TestTokenizer(t *testing.T) {
	folder := copied(t, "clip", map[string]string{"vocab.json": "{}", "merges.txt": "#", "tokenizer.json": "{}", "spiece.model": "a", "tokenizer_config.json": "{}"})
	m := open1(t, folder)
	at := func(name string) string { return filepath.Join(folder, name) }
	if m.Tokenizer != (Tokenizer{at("tokenizer.json"), at("vocab.json"), at("merges.txt"), at("spiece.model"), at("tokenizer_config.json")}) {
		t.Errorf("%+v", m.Tokenizer)
	}
	if m = open1(t, copied(t, "bert", map[string]string{"vocab.txt": "a"})); filepath.Base(m.Tokenizer.Vocabulary) != "vocab.txt" {
		t.Errorf("%+v", m.Tokenizer)
	}
}

// What a file lacks and what is in it beside a model is said, and shapes that no model has are refused.
func TestOddTensors(t *testing.T) {
	for _, c := range []struct {
		name, tensor string
		shape        []int // nil: without it
		want         string
	}{
		{"bert", "bert.encoder.layer.1.attention.self.key.bias", nil, "its layers have tensors that are not read (bert.encoder.layer.1.attention.self.query.bias, bert.encoder.layer.1.attention.self.value.bias)"},
		{"bert", "bert.encoder.layer.1.output.dense.scale", []int{1}, "its layers have tensors that are not read (bert.encoder.layer.1.output.dense.scale), and compute something else"},
		{"bert", "bert.encoder.layer.1.attention.self.key.weight", []int{8, 7}, `key.weight" of `},
		{"bert", "bert.embeddings.word_embeddings.weight", []int{24}, "text/embeddings/word/weight has shape [24], which it cannot have"},
		{"bert", "bert.encoder.layer.0.intermediate.dense.weight", nil, "it lacks what text/layers/00/ffn/intermediate/weight is made of: is it complete?"},
		{"vit", "vit.embeddings.position_embeddings", []int{1, 8, 8}, "want positions of a square grid of patches: is it of this family?"},
		{"vit", "vit.embeddings.position_embeddings", []int{2, 5, 8}, "has shape [2 5 8], want (1, T, D)"},
		{"vit", "vit.embeddings.patch_embeddings.projection.weight", []int{8, 1, 4, 4}, "has shape [8 1 4 4], want (D, 3, patch, patch)"},
		{"vit", "vit.embeddings.cls_token", []int{1, 2, 8}, "want (1, 1, D)"},
		{"open_clip", "visual.positional_embedding", []int{1, 8}, "and 0 positions are no square patches of a square image"},
		{"open_clip", "visual.positional_embedding", []int{6, 8}, "and 5 positions are no square patches of a square image"},
		{"vit", "vit.encoder.layer.0.output.dense.weight", []int{8, 5}, "16 hidden channels before and 5 after"},
		{"clip", "logit_scale", []int{2}, "has shape [2], want one number"},
		{"clip", "visual_projection.weight", []int{}, "image_proj/weight has shape [], which it cannot have"},
		{"open_clip", "visual.proj", []int{48}, "has shape [48], want a matrix"},
		{"mpnet", "encoder.relative_attention_bias.weight", []int{16, 2}, "a bias for 16 buckets of distances, and 32 are read"},
		{"roberta", "roberta.embeddings.position_embeddings.weight", []int{2, 8}, "want more than the 2 rows of padding"},
		{"roberta", "roberta.embeddings.token_type_embeddings.weight", []int{1, 4}, "want rows of 8"},
		{"deit", "deit.embeddings.distillation_token", []int{1, 1, 4}, "want rows of 8"},
	} {
		file := filepath.Base(golden(c.name))
		folder := copied(t, c.name, map[string]string{file: string(contents(t, golden(c.name), func(list []safetensors.Tensor) []safetensors.Tensor {
			var kept []safetensors.Tensor
			for _, x := range list {
				if x.Name != c.tensor {
					kept = append(kept, x)
				}
			}
			if c.shape != nil {
				kept = append(kept, float(c.tensor, c.shape...))
			}
			return kept
		}))})
		m, err := Open(folder)
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			said = m.Report().String() + "\n"
			m.Close()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s with %s of shape %v: %s\nwant %s", c.name, c.tensor, c.shape, said, c.want)
		}
	}
}

// A tensor that is not known within a layer, or where patches become tokens, is an error, as something else is computed there; one beside the layers does not.
func TestUnknownWithinLayers(t *testing.T) {
	for _, c := range []struct {
		name, tensor string
		within       bool
	}{
		{"open_clip", "visual.transformer.resblocks.1.ls_1.gamma", true}, {"open_clip", "transformer.resblocks.0.ls_1.gamma", true}, {"open_clip", "visual.transformer.resblocks.x", false}, {"open_clip", "more", false},
		{"clip", "vision_model.encoder.layers.0.self_attn.q_norm.weight", true}, {"vit", "vit.encoder.layer.1.attention.q_norm.weight", true}, {"timm", "blocks.0.attn.gate.weight", true}, {"timm", "attn_pool.q_norm.weight", true}, {"timm", "rel_pos.weight", true},
		{"timm", "patch_embed.norm.weight", true}, {"open_clip_vit", "visual.trunk.patch_embed.norm.weight", true}, {"timm", "some_patch_embed.x", false},
	} {
		file := filepath.Base(golden(c.name))
		m, err := Open(copied(t, c.name, map[string]string{file: string(contents(t, golden(c.name), func(list []safetensors.Tensor) []safetensors.Tensor {
			return append(list, float(c.tensor, 8))
		}))}))
		if c.within {
			check.Error(t, err, "its layers have tensors that are not read ("+c.tensor+"), and compute something else")
			continue
		}
		if err != nil || !slices.Contains(m.Report().Unexpected, c.tensor) {
			t.Errorf("%s with %s: %v", c.name, c.tensor, err)
		}
		m.Close()
	}
}

// FuzzModel gives a tensor of a golden model another shape, and the files beside it other contents: whatever they say, a
// model has settings that can be, and its parameters are read or are errors.
func FuzzModel(f *testing.F) {
	read := func(name, file string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name, file))
		if err != nil {
			return []byte("{}")
		}
		return b
	}
	var models [][]safetensors.Tensor
	for _, g := range goldens {
		if path := golden(g.name); strings.HasSuffix(path, ".safetensors") {
			contents(f, path, func(list []safetensors.Tensor) []safetensors.Tensor { models = append(models, list); return nil })
			f.Add(len(models)-1, 0, 1, 5, 8, read(g.name, "config.json"), read(g.name, "preprocessor_config.json"), read(g.name, "open_clip_config.json"))
		}
	}
	f.Fuzz(func(t *testing.T, which, tensor, a, b, c int, config, prepare, openCLIP []byte) {
		defer budgettest.Within(t, len(config)+len(prepare)+len(openCLIP))()
		list := slices.Clone(models[uint(which)%uint(len(models))])
		var shape []int
		for _, n := range []int{a, b, c} {
			if n >= 0 {
				shape = append(shape, n%64)
			}
		}
		i := uint(tensor) % uint(len(list))
		list[i] = float(list[i].Name, shape...)
		text := stored(t, list...)
		file := &File{Path: "a", tensors: map[string]*Tensor{}}
		check.Get(file.addShard(&shard{path: "a", r: bytes.NewReader(text)}, int64(len(text))))(t)
		x := &facts{path: "config.json"}
		if parseJSON(config, &x.config) != nil {
			x.config = hfConfig{}
		}
		if p := new(processor); parseJSON(prepare, p) == nil {
			x.processor = p
		}
		if p := new(openCLIPConfig); parseJSON(openCLIP, p) == nil && p.Model.Text.Heads != 0 {
			x.openCLIP = p
		}
		m, err := describe(file, x, "")
		if err != nil {
			return
		}
		for _, s := range m.Settings() {
			if n, err := strconv.Atoi(s.Value); err == nil && n < 1 && s.Key != "model.text.fusion_layers" && !strings.HasPrefix(s.Key, "objective.") {
				t.Errorf("%v", s)
			}
		}
		for _, name := range m.Names() {
			if err := m.Read(name, m.Shape(name), make([]float32, count(m.Shape(name)))); err != nil {
				t.Error(err)
			}
		}
	})
}

// What open_clip does to texts before its tokenizer reads them is known by its configuration, of other families nothing.
func TestTextsAreCleaned(t *testing.T) {
	with := func(kwargs string) map[string]string {
		return map[string]string{"open_clip_config.json": openCLIPConfig1(t, "open_clip_siglip", `"no_causal_mask": true`, kwargs+`, "no_causal_mask": true`)}
	}
	for _, c := range []struct {
		name        string
		files       map[string]string
		clean, want string // want: in the error
	}{
		{"clip", nil, "", ""}, {"bert", nil, "", ""}, {"open_clip", nil, "lower", ""}, {"open_clip", map[string]string{"open_clip_config.json": ""}, "lower", ""},
		{"open_clip_siglip", with(`"hf_tokenizer_name": "x"`), "whitespace", ""},
		{"open_clip_siglip", with(`"hf_tokenizer_name": "x", "tokenizer_kwargs": {"clean": "canonicalize"}`), "canonicalize", ""},
		{"open_clip_siglip", with(`"tokenizer_kwargs": {"clean": "whitespace"}`), "whitespace", ""},
		{"open_clip_siglip", with(`"tokenizer_kwargs": {"clean": "clips"}`), "", `tokenizer_kwargs.clean = "clips" in text_cfg: whitespace, lower and canonicalize are read`},
	} {
		m, err := Open(copied(t, c.name, c.files))
		if c.want != "" {
			check.Error(t, err, c.want)
			continue
		}
		check.OK(t, err)
		if m.Clean != c.clean {
			t.Errorf("%s %v: texts are cleaned by %q, want %q", c.name, c.files, m.Clean, c.clean)
		}
		check.OK(t, m.Close())
	}
}
