package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/weights"
)

// Forms that a model is written in.
const (
	Geoalign = "geoalign"
	HF       = "hf"
	Timm     = "timm"
	OpenCLIP = "open_clip"
	ALBEF    = "albef"
	ONNX     = "onnx"
	Sentence = "sentence-transformers"
	PEFT     = "peft"
)

// Forms lists them.
func Forms() []string { return []string{Geoalign, HF, Timm, OpenCLIP, ALBEF, ONNX, Sentence, PEFT} }

// DTypes lists the types that numbers are written in.
func DTypes() []string { return []string{"fp32", "fp16", "bf16"} }

// dtypes are their names in safetensors and in PyTorch.
var dtypes = map[string]struct {
	file  safetensors.DType
	torch string
}{"": {safetensors.F32, "float32"}, "fp32": {safetensors.F32, "float32"}, "fp16": {safetensors.F16, "float16"},
	"bf16": {safetensors.BF16, "bfloat16"}}

// Model is what is written.
type Model struct {
	Config    config.Config        // without what weights take in, see config.Model.Folded; with it for PEFT
	Params    []weights.Param      // all of them, under the names of this module
	Twins     []weights.Param      // momentum/NAME, and queues as queue/image and queue/text; none where there are none
	Tokenizer *tokenizer.Tokenizer // nil for a system without texts
	Metrics   map[string]float64   // of the last evaluation, for the card of the model; nil: none
}

// Options say how.
type Options struct {
	To   string // one of Forms
	Side string // image or text; empty: both
	Out  string // folder, which is not there or empty
	// DType is that of the numbers, one of DTypes; empty: fp32. ONNX has fp32 alone.
	DType string
	// Base is the name or folder of the model that a run was tuned from, and License the name of its licence, for
	// adapters and the card of the model; empty: not said.
	Base, License string
	// External is the size in bytes from which the weights of an ONNX model lie in a file beside it; 0: 1.5 GB, below
	// the 2 GB that a protocol buffer can have.
	External int64
}

// Written is what Write wrote.
type Written struct {
	Path    string   `json:"path"`
	To      string   `json:"to"`
	Side    string   `json:"side,omitempty"`
	DType   string   `json:"dtype"`
	Class   string   `json:"class,omitempty"` // of the program that reads it
	Tensors int      `json:"tensors"`
	Numbers int      `json:"numbers"`
	Files   []string `json:"files"`
	Load    string   `json:"load,omitempty"` // how the program reads it
	Notes   []string `json:"notes,omitempty"`
}

// Write writes a model to the folder o.Out, which is there as a whole or not at all. Memory holds a tensor at
// a time. A model that the form cannot hold is a *RefusedError.
func Write(m Model, o Options) (Written, error) {
	x := &job{Model: m, Options: o, files: map[string]fill{}, params: map[string]weights.Param{}}
	x.foldAttention()
	for _, p := range x.Params {
		x.params[p.Name] = p
	}
	w, err := x.write()
	if err != nil {
		return w, fmt.Errorf("export: %w", err)
	}
	return w, nil
}

// fill writes the content of a file.
type fill func(w io.Writer) error

// job is a model that is being written.
type job struct {
	Model
	Options
	sides  model.Sides
	params map[string]weights.Param
	files  map[string]fill
	class  string
	load   string
	notes  []string
	count  int // tensors
	size   int // numbers
}

// note tells the user something.
func (x *job) note(format string, args ...any) {
	x.notes = append(x.notes, fmt.Sprintf(format, args...))
}

func (x *job) write() (Written, error) {
	forms := map[string]func() error{Geoalign: x.geoalign, HF: x.hf, Timm: x.timm, OpenCLIP: x.openCLIP, ALBEF: x.albef,
		ONNX: x.onnx, Sentence: x.sentence, PEFT: x.peft}
	form := forms[x.To]
	if form == nil {
		return Written{}, fmt.Errorf("there is no form %q: use %s", x.To, strings.Join(Forms(), ", "))
	}
	if !slices.Contains([]string{"", "image", "text"}, x.Side) {
		return Written{}, fmt.Errorf("a model has no side %q: use image or text", x.Side)
	}
	if _, known := dtypes[x.DType]; !known {
		return Written{}, fmt.Errorf("numbers have no type %q: use %s", x.DType, strings.Join(DTypes(), ", "))
	}
	if x.To == ONNX && dtypes[x.DType].file != safetensors.F32 {
		return Written{}, x.refuse("--dtype", x.DType, "its graphs are written in fp32", "--dtype fp32", asHF)
	}
	if x.Config.Has(section.Foldable) && x.To != PEFT {
		return Written{}, fmt.Errorf("model.lora.rank = %d and model.tuning.ssf = %t: no form has adapters, scales and shifts: merge them first (train.Params)", x.Config.Model.LoRA.Rank, x.Config.Model.Tuning.SSF)
	}
	if err := x.describe(); err != nil {
		return Written{}, err
	}
	if err := form(); err != nil {
		return Written{}, err
	}
	if slices.Contains([]string{HF, Sentence, PEFT}, x.To) {
		x.card()
	}
	w := Written{Path: x.Out, To: x.To, Side: x.Side, DType: cmp.Or(x.DType, "fp32"), Class: x.class, Load: x.load}
	var err error
	w.Files, err = writeFolder(x.Out, x.files, x.note)
	w.Notes, w.Tensors, w.Numbers = x.notes, x.count, x.size
	return w, err
}

// describe finds the sides of the model, and refuses what no form but this module's own has.
func (x *job) describe() (err error) {
	if x.Config.Has(section.Fitted) {
		if x.To == Geoalign && x.Side == "" {
			return nil
		}
		return x.refuse("model.system", x.Config.Model.System,
			"a map in closed form has no towers, and one file for both sides")
	}
	o := model.Options{Vocab: 1, Pad: 0}
	if words, ok := x.params["text/embeddings/word/weight"]; ok {
		o.Vocab = words.Shape[0]
	}
	if x.Tokenizer != nil {
		o.Pad = int(x.Tokenizer.PadRow())
	}
	if x.sides, err = model.Describe(x.Config, o); err != nil {
		return err
	}
	if x.sides.Views {
		if x.Side == "text" {
			return x.refuse("model.system", x.Config.Model.System, "it has no text tower", "--side image")
		}
		x.Side = "image"
	}
	if x.sides.Sentences {
		if x.Side == "image" {
			return x.refuse("model.system", x.Config.Model.System, "it has no image tower", "--side text")
		}
		x.Side = "text"
	}
	if t := x.Config.Model.Tuning; x.To != Geoalign && t.AdapterWidth > 0 {
		return x.refuse("model.tuning.adapter_width", t.AdapterWidth,
			"its layers have no bottlenecks, which no weight can take in: tune by model.lora or model.tuning.ssf for it")
	} else if x.To != Geoalign && t.PromptTokens > 0 {
		return x.refuse("model.tuning.prompt_tokens", t.PromptTokens,
			"its layers have no prompts, which no weight can take in: tune by model.lora or model.tuning.ssf for it")
	}
	if x.To != Geoalign && x.To != ONNX && x.Config.Has(section.Stored) {
		return x.refuse("model.system", x.Config.Model.System, "heads over stored features have no towers", asONNX)
	}
	return nil
}

// some returns the parameters below prefixes, but those that drop names.
func (x *job) below(drop func(name string) bool, prefixes ...string) (list []weights.Param) {
	for _, p := range x.Params {
		if slices.ContainsFunc(prefixes, func(s string) bool { return strings.HasPrefix(p.Name, s) }) &&
			(drop == nil || !drop(p.Name)) {
			list = append(list, p)
		}
	}
	return list
}

// tensors adds a safetensors file of parameters under other names.
func (x *job) tensors(file string, params []weights.Param, meta map[string]string) {
	list := make([]safetensors.Tensor, len(params))
	for i, p := range params {
		n := size(p.Shape)
		list[i] = safetensors.Tensor{Name: p.Name, Shape: p.Shape, Data: safetensors.Lazy{Len: n, Fill: p.Read, As: dtypes[x.DType].file}}
		x.count, x.size = x.count+1, x.size+n
	}
	slices.SortFunc(list, func(a, b safetensors.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	x.files[file] = func(w io.Writer) error { return safetensors.WriteSummed(w, list, meta) }
}

// leftOut notes which parameters of the model are not among those written.
func (x *job) leftOut(params []weights.Param) {
	parts := map[string]bool{}
	for _, p := range params {
		parts[partOf(p.Name)] = true
	}
	var left []string
	for _, p := range x.Params {
		if part := partOf(p.Name); !parts[part] && !slices.Contains(left, part) {
			left = append(left, part)
		}
	}
	slices.Sort(left)
	if len(left) > 0 {
		x.note("not part of %s and left out: %s", x.class, strings.Join(left, ", "))
	}
}

// partOf is the part of a model that a parameter is of.
func partOf(name string) string {
	part, rest, _ := strings.Cut(name, "/")
	if sub, _, ok := strings.Cut(rest, "/"); ok && (sub == "mlm" || sub == "pool") {
		part += "/" + sub
	}
	return part
}
