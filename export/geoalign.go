package export

// geoalign writes the parameters under the names of this module, with configuration and tokenizer.
func (x *job) geoalign() error {
	prefixes := []string{""}
	switch x.Side {
	case "image":
		prefixes = []string{x.sides.Image.Name + "/", x.sides.Image.Proj + "/"}
	case "text":
		prefixes = []string{x.sides.Text.Name + "/", x.sides.Text.Proj + "/"}
	}
	params := x.below(nil, prefixes...)
	text, err := x.Config.Encode()
	if err != nil {
		return err
	}
	x.tensors("model.safetensors", params, map[string]string{"format": "geoalign"})
	x.text("config.toml", text)
	if x.Tokenizer != nil && x.Side != "image" {
		b, err := x.Tokenizer.JSON()
		if err != nil {
			return err
		}
		x.text("tokenizer.json", b)
	}
	return nil
}
