package weights

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// hfConfig is what is read of a config.json of Hugging Face or timm. 0 or "" stands for a key that is not
// there, which the library fills in from the defaults of a class.
type hfConfig struct {
	ModelType    string  `json:"model_type"`
	HiddenSize   int     `json:"hidden_size"`
	Layers       int     `json:"num_hidden_layers"`
	Heads        int     `json:"num_attention_heads"`
	Intermediate int     `json:"intermediate_size"`
	HiddenAct    string  `json:"hidden_act"`
	Eps          float64 `json:"layer_norm_eps"`
	Vocab        int     `json:"vocab_size"`
	PadID        *int    `json:"pad_token_id"`
	Position     string  `json:"position_embedding_type"`
	Decoder      bool    `json:"is_decoder"`
	// the head of masked language modelling reads the embeddings of words; true where it is not there
	Tied      *bool `json:"tie_word_embeddings"`
	ImageSize sides `json:"image_size"`
	PatchSize sides `json:"patch_size"`
	Channels  int   `json:"num_channels"`

	// Keys of residual networks.
	EmbeddingSize   int  `json:"embedding_size"`
	BottleneckFirst bool `json:"downsample_in_bottleneck"`
	FirstStage      bool `json:"downsample_in_first_stage"`

	Text   *hfConfig `json:"text_config"`
	Vision *hfConfig `json:"vision_config"`

	// Old files of CLIP have these, which go before the two above, key for key and default for default.
	TextDict   *hfConfig `json:"text_config_dict"`
	VisionDict *hfConfig `json:"vision_config_dict"`

	// Keys of timm.
	Architecture string       `json:"architecture"`
	Args         timmArgs     `json:"model_args"`
	Pretrained   *timmPrepare `json:"pretrained_cfg"`
}

// timmArgs are the arguments that a model of timm is made with, of those that no tensor shows.
type timmArgs struct {
	Heads      int    `json:"num_heads"`
	ImageSize  sides  `json:"img_size"`
	Norm       any    `json:"norm_layer"`
	Activation any    `json:"act_layer"` // a name, or a module of PyTorch by its name
	Pool       string `json:"global_pool"`
	PoolAll    bool   `json:"pool_include_prefix"` // the mean is of class token and registers too

	// Of vision transformers.
	FinalNorm      *bool    `json:"final_norm"`
	PostNorm       *bool    `json:"use_post_transformer_norm"`
	ResPost        bool     `json:"use_post_norm"`
	HeadWidth      int      `json:"attn_head_dim"`
	AttentionScale bool     `json:"attn_only_layer_scale"`
	PoolHeads      int      `json:"attn_pool_num_heads"`
	Rotary         *bool    `json:"use_rot_pos_emb"`
	RotaryType     string   `json:"rope_type"`
	Theta          float64  `json:"rope_temperature"`
	RotaryOffset   *float64 `json:"rope_grid_offset"`
	RotaryIndexing string   `json:"rope_grid_indexing"`
	RotaryHalf     *bool    `json:"rope_rotate_half"`
	Reference      sides    `json:"ref_feat_shape"`

	// Of residual networks.
	Blur   any  `json:"aa_layer"`          // behind strides
	Stride int  `json:"output_stride"`     // 0: 32, of all strides together
	NoStem bool `json:"replace_stem_pool"` // a convolution in the place of the pool
}

// openCLIPConfig is what is read of an open_clip_config.json.
type openCLIPConfig struct {
	Model struct {
		QuickGELU bool           `json:"quick_gelu"`
		Vision    openCLIPVision `json:"vision_cfg"`
		Text      openCLIPWords  `json:"text_cfg"`
	} `json:"model_cfg"`
	Prepare openCLIPPrepare `json:"preprocess_cfg"`
}

// openCLIPVision is what is read of vision_cfg.
type openCLIPVision struct {
	HeadWidth int     `json:"head_width"`
	Pool      string  `json:"pool_type"`           // empty: tok
	NormLast  bool    `json:"final_ln_after_pool"` // behind the pool
	Attention any     `json:"attentional_pool"`    // true, or how; the pool is another then
	PoolHeads int     `json:"attn_pooler_heads"`   // 0: 8
	ImageSize sides   `json:"image_size"`          // of what is prepared too, whatever preprocess_cfg says
	Timm      string  `json:"timm_model_name"`     // empty: a tower of open_clip
	TimmPool  *string `json:"timm_pool"`           // nil: avg, whatever the pool of the architecture; empty: that
	openCLIPLayers
}

// openCLIPWords is what is read of text_cfg.
type openCLIPWords struct {
	Heads       int    `json:"heads"`
	NoCausal    bool   `json:"no_causal_mask"` // a word sees those behind it too
	PadMask     bool   `json:"use_pad_mask"`   // padding is not read
	Class       bool   `json:"embed_cls"`      // a token behind the text that stands for it
	Pool        string `json:"pool_type"`
	Context     int    `json:"context_length"`    // 0: 77
	Pooler      string `json:"hf_pooler_type"`    // of a tower of Hugging Face; null: that of its class
	HuggingFace string `json:"hf_model_name"`     // empty: a tower of open_clip
	Tokenizer   string `json:"hf_tokenizer_name"` // empty: that of CLIP
	Reads       struct {
		Clean string `json:"clean"` // empty: lower with the tokenizer of CLIP, whitespace with others
		Strip bool   `json:"strip_sep_token"`
	} `json:"tokenizer_kwargs"`
	openCLIPLayers
}

// openCLIPLayers are the arguments of the layers of a tower.
type openCLIPLayers struct {
	Norm struct {
		Eps float64 `json:"eps"`
	} `json:"norm_kwargs"`
	Activation struct {
		Approximate string `json:"approximate"` // tanh, else none
	} `json:"act_kwargs"`
}

// sides is the height and width of an image or a patch: one number, two in a list, or an object of Hugging
// Face's processors.
type sides struct {
	height, width int
	shortest      bool // of the shortest side, the other follows
	number        bool // one number for both
}

// UnmarshalJSON reads one of the forms.
func (s *sides) UnmarshalJSON(text []byte) error {
	if string(text) == "null" { // as if it were not there
		return nil
	}
	var one int
	if json.Unmarshal(text, &one) == nil {
		*s = sides{height: one, width: one, number: true}
		return nil
	}
	var list []int
	if json.Unmarshal(text, &list) == nil && (len(list) == 2 || len(list) == 1) {
		*s = sides{height: list[0], width: list[len(list)-1]}
		return nil
	}
	var object struct {
		Height   int `json:"height"`
		Width    int `json:"width"`
		Shortest int `json:"shortest_edge"`
		Longest  int `json:"longest_edge"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("%.60q is no size: want a number, [height, width] or an object with height and width or shortest_edge", text)
	}
	if object.Longest != 0 && object.Shortest == 0 && object.Height == 0 && object.Width == 0 {
		return fmt.Errorf("images are scaled by their longest side (longest_edge = %d) and so are not square, and only squares are read", object.Longest)
	}
	*s = sides{height: object.Height, width: object.Width}
	if object.Shortest != 0 {
		*s = sides{height: object.Shortest, width: object.Shortest, shortest: true}
	}
	return nil
}

// square is the side of a square, 0 where nothing is said; other sizes are an error that begins with their place.
func (s sides) square(place string) (int, error) {
	if s.height != s.width {
		return 0, fmt.Errorf("%s: images of %d x %d are not square, and only these are read", place, s.height, s.width)
	}
	return max(0, s.height), nil
}

// facts is what the files beside the weights say.
type facts struct {
	path      string // of config.json
	config    hfConfig
	openCLIP  *openCLIPConfig
	processor *processor
	tokenizer Tokenizer

	modules     []module
	pooling     *pooling
	poolingFile string
	sentence    sentence
	folder      string // of the modules
}

// kinds are what the files call the model, none without any. A folder may have a model in the forms of two programs.
func (x *facts) kinds() (kinds []string) {
	if x.openCLIP != nil {
		kinds = append(kinds, "open_clip")
	}
	switch {
	case x.config.ModelType != "":
		kinds = append(kinds, x.config.ModelType)
	case x.config.Architecture != "":
		kinds = append(kinds, "timm")
	}
	return kinds
}

// readFacts reads the files of a folder. None of them need be there.
// modules is the folder that has those of sentence-transformers.
func readFacts(folder, modules string) (*facts, error) {
	x := &facts{path: filepath.Join(folder, "config.json"), tokenizer: findTokenizer(folder), folder: modules}
	if _, err := readJSON(x.path, &x.config); err != nil {
		return nil, err
	}
	if x.config.Architecture != "" && x.config.Pretrained == nil {
		x.config.Pretrained = new(timmPrepare) // old files have its keys at the top
		if _, err := readJSON(x.path, x.config.Pretrained); err != nil {
			return nil, err
		}
	}
	openCLIP, prepare := &openCLIPConfig{}, &processor{file: "preprocessor_config.json"}
	// of texts and images in one file, as transformers saves them since version 5, and then the one that it reads
	var whole struct {
		Images *processor `json:"image_processor"`
	}
	for _, file := range []struct {
		name  string
		into  any
		found func()
	}{
		{"open_clip_config.json", openCLIP, func() { x.openCLIP = openCLIP }},
		{prepare.file, prepare, func() { x.processor = prepare }},
		{"processor_config.json", &whole, func() {
			if whole.Images != nil {
				x.processor, whole.Images.file = whole.Images, "processor_config.json"
			}
		}},
	} {
		ok, err := readJSON(filepath.Join(folder, file.name), file.into)
		if err != nil {
			return nil, err
		}
		if ok {
			file.found()
		}
	}
	return x, x.readSentence(modules, folder)
}

// readJSON reads a file of JSON, false where there is none.
func readJSON(path string, into any) (bool, error) {
	text, err := files.Read(path, files.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := parseJSON(files.WithoutMark(text), into); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// parseJSON reads JSON without keys that are there twice.
func parseJSON(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return readable(err)
	}
	return strictjson.Check(text)
}

// readable says which key has a value of another kind than is read.
func readable(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want, key := "an object", e.Field
	switch e.Type.Kind() {
	case reflect.Int, reflect.Float64:
		want = "a number"
	case reflect.String:
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
	}
	if key == "" {
		key = "it"
	}
	is := map[string]string{"array": "a list", "object": "an object", "string": "a text", "number": "a number",
		"bool": "true or false"}[e.Value]
	return fmt.Errorf("%s is %s, and %s is read: is it a model of a family that is?", key, cmp.Or(is, e.Value), want)
}

// Tokenizer is the files of a folder that a tokenizer is made of, empty where there is none.
type Tokenizer struct {
	JSON          string // tokenizer.json of Hugging Face's library
	Vocabulary    string // vocab.txt of WordPiece, or vocab.json, which goes with merges
	Merges        string // merges.txt of byte pair encoding
	SentencePiece string // spiece.model or sentencepiece.bpe.model
	Config        string // tokenizer_config.json
}

// findTokenizer looks for the files of a tokenizer.
func findTokenizer(folder string) (t Tokenizer) {
	for _, file := range []struct {
		name string
		at   *string
	}{
		{"tokenizer.json", &t.JSON},
		{"vocab.json", &t.Vocabulary},
		{"vocab.txt", &t.Vocabulary},
		{"merges.txt", &t.Merges},
		{"sentencepiece.bpe.model", &t.SentencePiece},
		{"spiece.model", &t.SentencePiece},
		{"tokenizer_config.json", &t.Config},
	} {
		path := filepath.Join(folder, file.name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			*file.at = path
		}
	}
	return t
}
