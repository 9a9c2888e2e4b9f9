package export

import (
	"fmt"

	"github.com/geoalign/geoalign/weights"
)

// hf writes a folder for from_pretrained of transformers: one class for both towers where there is one, or that of a
// side.
func (x *job) hf() error {
	switch x.Side {
	case "image":
		return x.hfImage()
	case "text":
		return x.hfText()
	}
	return x.hfBoth()
}

// pretrained adds the files of a class of transformers: its weights under the names of a family, and config.json.
func (x *job) pretrained(class string, naming weights.Naming, params []weights.Param, config object) error {
	if x.To == PEFT {
		return x.adapters(class, naming, params)
	}
	x.class = class
	list, err := weights.Renamed(params, naming)
	if err != nil {
		return err
	}
	config["architectures"], config["dtype"] = []string{class}, dtypes[x.DType].torch
	config["torch_dtype"] = config["dtype"] // its name before transformers 4.56
	x.json("config.json", config)
	x.tensors("model.safetensors", list, map[string]string{"format": "pt"})
	x.load = fmt.Sprintf("transformers.%s.from_pretrained(%q)", class, x.Out)
	if x.To != Sentence { // which has the head too
		x.leftOut(params)
	}
	return nil
}
