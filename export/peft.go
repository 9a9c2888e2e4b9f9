package export

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// adaptersFile are the adapters in a folder of PEFT.
const adaptersFile = "adapter_model.safetensors"

// peft writes the adapters of low rank of a model (model.lora) for PEFT, beside the class of transformers that hf writes
// of the model without them.
func (x *job) peft() error {
	m := x.Config.Model
	const without = "its adapters are of low rank alone, and the weights that they stand beside are as they were"
	switch methods := m.Tuning.Methods(); {
	case m.LoRA.Rank == 0:
		return x.refuse("model.lora.rank", 0, "the model has no adapters", asHF)
	case len(methods) > 0:
		return x.refuse(methods[0], "on", without, asHF)
	case m.Tuning.Metric != "":
		return x.refuse("model.tuning.metric", m.Tuning.Metric, without, asHF)
	case m.AttentionMetric.Form != "":
		return x.refuse("model.attention_metric.form", m.AttentionMetric.Form, without, asHF)
	}
	return x.hf()
}

// bare says whether the text tower is written without the head of masked language modelling, whatever stands for a text.
func (x *job) bare() bool { return x.To == Sentence || x.To == PEFT }

// adaptable are the classes whose layers have the same names in all versions of transformers, and what stands before these
// names in files of weights alone.
var adaptable = map[string]string{"BertModel": "bert.", "RobertaModel": "roberta.", "MPNetModel": "mpnet.", "CLIPModel": "",
	"CLIPTextModelWithProjection": "", "CLIPVisionModelWithProjection": ""}

// adapters adds the files of PEFT for a class of transformers whose parameters are params. What of the class is trained
// beside the adapters is written as a whole (modules_to_save).
func (x *job) adapters(class string, naming weights.Naming, params []weights.Param) error {
	inner, ok := adaptable[class]
	if !ok {
		key, style := "model.image.style", x.Config.Model.Image.Style
		if x.Side == "text" {
			key, style = "model.text.style", x.Config.Model.Text.Style
		}
		return x.refuse(key, style, "PEFT finds layers by their names, and those within "+class+" are not the same in all versions of transformers", asHF)
	}
	var list []weights.Param
	adapted := 0
	for _, p := range params {
		layer, own := path.Split(p.Name)
		switch up, ok := x.params[layer+encoders.LoRAUp]; {
		case own == encoders.LoRADown:
			adapted++
			continue
		case own == encoders.LoRAUp:
			continue
		case ok && own == "weight": // rows of a matrix are rows of its adapter's second one
			p.Shape, p.Read = up.Shape, up.Read
		}
		list = append(list, p)
	}
	if adapted == 0 {
		return x.refuse("model.lora.layers", fmt.Sprint(x.Config.Model.LoRA.Layers), "no layer of "+class+" has an adapter", asHF)
	}
	renamed, err := weights.Renamed(list, naming)
	if err != nil {
		return err
	}
	const prefix = "base_model.model."
	var targets, saved []string
	list = list[:0]
	for _, t := range renamed {
		layer, own := path.Split(t.From)
		t.Name = strings.TrimPrefix(t.Name, inner)
		module, weight := strings.CutSuffix(t.Name, ".weight")
		down, ok := x.params[layer+encoders.LoRADown]
		switch {
		case ok && own == "weight":
			if !weight {
				return fmt.Errorf("%s has an adapter, and is %s of %s, which is no linear layer: leave it out of model.lora.layers", layer, t.Name, class)
			}
			targets = append(targets, module)
			list = append(list, weights.Param{Name: prefix + module + ".lora_A.weight", Shape: down.Shape, Read: down.Read},
				weights.Param{Name: prefix + module + ".lora_B.weight", Shape: t.Shape, Read: t.Read})
		case len(t.Shape) == 0 && !strings.Contains(t.From, "/"): // a scale of scores
			x.note("%s is trained and part of no layer: scores have the scale of the model that the adapters are put into", t.Name)
		case trainedBeside(t.From):
			module := strings.TrimSuffix(module, ".bias")
			if !slices.Contains(saved, module) {
				saved = append(saved, module)
			}
			list = append(list, weights.Param{Name: prefix + t.Name, Shape: t.Shape, Read: t.Read})
		}
	}
	slices.Sort(targets)
	lora := x.Config.Model.LoRA
	config := object{"peft_type": "LORA", "base_model_name_or_path": nil, "task_type": nil, "inference_mode": true,
		"r": lora.Rank, "lora_alpha": number(lora.Alpha), "lora_dropout": number(lora.Dropout), "target_modules": targets,
		"modules_to_save": saved, "bias": "none", "fan_in_fan_out": false, "use_rslora": false, "use_dora": false}
	base := "BASE"
	if x.Base != "" {
		config["base_model_name_or_path"], base = x.Base, fmt.Sprintf("%q", x.Base)
	} else {
		x.note("BASE is the %s that the run was tuned from: --base-model writes its name down", class)
	}
	x.class, x.files = class, map[string]fill{} // of which the class has its own
	x.leftOut(params)
	x.json("adapter_config.json", config)
	x.tensors(adaptersFile, list, map[string]string{"format": "pt"})
	x.load = fmt.Sprintf("peft.PeftModel.from_pretrained(transformers.%s.from_pretrained(%s), %q)", class, base, x.Out)
	return nil
}

// trainedBeside says whether a parameter of a transformer or its head is trained beside adapters: heads and the pooler are.
func trainedBeside(name string) bool {
	return strings.HasPrefix(name, "image_proj/") || strings.HasPrefix(name, "text_proj/") ||
		strings.HasPrefix(name, "text/pooler/")
}
