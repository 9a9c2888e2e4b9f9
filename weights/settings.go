package weights

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Setting is a key of the configuration and the value that a model has there.
type Setting struct {
	Key   string
	Value string // as TOML spells it
}

// String is the setting as --set and a file take it.
func (s Setting) String() string { return s.Key + "=" + s.Value }

// description collects the settings of a model. Sizes are those of its parameters; what these do not show
// is in the files beside them, or a note says what was assumed.
type description struct {
	*facts
	*fit
	file     *File
	settings []Setting
	notes    []string
}

// pooling is what is read of 1_Pooling/config.json of sentence-transformers.
type pooling struct {
	Class bool   `json:"pooling_mode_cls_token"`
	Mean  bool   `json:"pooling_mode_mean_tokens"`
	Mode  string `json:"pooling_mode"`
}

// imageFacts and textFacts are what the towers of a family have where no file says other.
type (
	imageFacts struct {
		style, activation, pool string
		eps                     float64 // of the style
		preprocess              preprocess
	}
	textFacts struct {
		style, activation, pool string
		eps                     float64
		tokens                  bool // texts have as many tokens as there are positions
	}
)

func (d *description) has(name string) bool { _, ok := d.values[name]; return ok }

func (d *description) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// set adds a setting of a string, a number, or three numbers.
func (d *description) set(key string, v any) {
	text := ""
	switch x := v.(type) {
	case string:
		text = strconv.Quote(x)
	case [3]float64:
		parts := make([]string, len(x))
		for i, y := range x {
			parts[i] = strconv.FormatFloat(y, 'f', -1, 64)
			if y == math.Trunc(y) {
				parts[i] += ".0"
			}
		}
		text = "[" + strings.Join(parts, ", ") + "]"
	default:
		text = fmt.Sprint(x)
	}
	d.settings = append(d.settings, Setting{key, text})
}

// size returns an axis of a parameter.
func (d *description) size(name string, axis int) (int, error) {
	v, ok := d.values[name]
	if !ok {
		return 0, fmt.Errorf("it lacks what %s is made of: is it complete?", name)
	}
	if axis >= len(v.shape) || v.shape[axis] < 1 {
		return 0, fmt.Errorf("%s has shape %v, which it cannot have", name, v.shape)
	}
	return v.shape[axis], nil
}

// agrees compares a size with what config.json says, where it does.
func (d *description) agrees(key string, said, is int) error {
	if said != 0 && said != is {
		return fmt.Errorf("%s has %s = %d, and the tensors have %d: do both belong together?", d.path, key, said, is)
	}
	return nil
}

// depth is the number of layers with names that begin with list.
func (d *description) depth(list string) (n int) {
	for name := range d.values {
		if strings.HasPrefix(name, list) {
			if i, ok := layerOf(name); ok {
				n = max(n, i+1)
			}
		}
	}
	return n
}

// heads is the number of attention heads, which no shape shows.
func (d *description) heads(side string, said, width int) (int, error) {
	if said == 0 {
		if said = usualHeads[side][width]; said == 0 {
			said = max(1, width/64)
		}
		d.note("no file says how many heads the %s tower has: %d are assumed, as is usual for its width %d", side, said, width)
	}
	if said < 1 || width%said != 0 {
		return 0, fmt.Errorf("%d heads do not divide the width %d of the %s tower", said, width, side)
	}
	return said, nil
}

// usualHeads is the heads of published towers by their width, where they are not one for 64 channels: So400m, ViT-H,
// g and G, and MiniLM.
var usualHeads = map[string]map[int]int{
	"image": {1152: 16, 1280: 16, 1408: 16, 1664: 16},
	"text":  {384: 12},
}

// activation is the name of one by that of Hugging Face.
func activation(key, name, otherwise string) (string, error) {
	switch name {
	case "":
		return otherwise, nil
	case "gelu":
		return "gelu", nil
	case "gelu_new", "gelu_pytorch_tanh", "gelu_fast":
		return "gelu_tanh", nil
	case "quick_gelu":
		return "quick_gelu", nil
	}
	return "", fmt.Errorf("%s is %q, and gelu, gelu_pytorch_tanh, gelu_new, gelu_fast and quick_gelu are read", key, name)
}

// epsilon notes another epsilon of layer norms than that of a style.
func (d *description) epsilon(side, style string, said, is float64) {
	if said != 0 && math.Abs(said-is) > 1e-3*is {
		d.note("layer norms of the %s tower have epsilon %g, and those of style %s have %g", side, said, style, is)
	}
}

// image sets the keys of [model.image].
func (d *description) image(o imageFacts) error {
	config := &d.config
	if config.Vision != nil {
		config = config.Vision
	}
	width, err := d.size("image/pos_embed", 1)
	if err != nil {
		return err
	}
	positions, err := d.size("image/pos_embed", 0)
	if err != nil {
		return err
	}
	inputs, err := d.size("image/patch_embed/weight", 1)
	if err != nil {
		return err
	}
	hidden, err := d.size("image/blocks/00/mlp/fc1/weight", 0)
	if err != nil {
		return err
	}
	back, err := d.size("image/blocks/00/mlp/fc2/weight", 1)
	if err != nil {
		return err
	}
	if o.activation, err = activation("hidden_act", config.HiddenAct, o.activation); err != nil {
		return err
	}
	switch {
	case hidden == 2*back && hidden != back:
		hidden, o.activation = back, "swiglu"
	case hidden != back:
		return fmt.Errorf("an MLP of the image tower has %d hidden channels before and %d after its activation", hidden, back)
	}
	if d.has("image/cls_token") {
		positions--
	}
	patch, grid := root(inputs/3), root(positions)
	if patch*patch*3 != inputs || grid*grid != positions {
		return fmt.Errorf("patches of %d numbers and %d positions are no square patches of a square image", inputs, positions)
	}
	depth := d.depth("image/blocks/")
	said := config.Heads
	if d.openCLIP != nil && said == 0 {
		said = width / max(1, orElse(d.openCLIP.Model.Vision.HeadWidth, 64))
	}
	heads, err := d.heads("image", said, width)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		key      string
		said, is int
	}{
		{"hidden_size", config.HiddenSize, width}, {"num_hidden_layers", config.Layers, depth}, {"image_size", config.ImageSize.width, grid * patch},
		{"image_size", config.ImageSize.height, grid * patch}, {"patch_size", config.PatchSize.width, patch}, {"num_channels", config.Channels, 3},
	} {
		if err := d.agrees(c.key, c.said, c.is); err != nil {
			return err
		}
	}
	d.epsilon("image", o.style, config.Eps, o.eps)

	prepared, side, err := d.prepared(o.preprocess)
	if err != nil {
		return err
	}
	size := grid * patch
	if side > 0 && side != size {
		if side%patch == 0 {
			d.note("the files ask for images of %d pixels, and positions are stored for %d: they will be resampled", side, size)
			size = side
		} else {
			d.note("the files ask for images of %d pixels, which patches of %d do not divide: %d are taken", side, patch, size)
		}
	}
	d.set("model.image.style", o.style)
	d.set("model.image.size", size)
	d.set("model.image.patch", patch)
	d.set("model.image.depth", depth)
	d.set("model.image.width", width)
	d.set("model.image.heads", heads)
	d.set("model.image.mlp", hidden)
	d.set("model.image.activation", o.activation)
	d.set("model.image.pool", o.pool)
	if v, ok := d.values["image/registers"]; ok {
		d.set("model.image.registers", v.shape[0])
	}
	if prepared.resize != "" {
		d.set("model.image.mean", prepared.mean)
		d.set("model.image.std", prepared.std)
		d.set("model.image.resize", prepared.resize)
		d.set("model.image.interpolation", prepared.interpolation)
	}
	return nil
}

// text sets the keys of [model.text].
func (d *description) text(o textFacts) error {
	config := &d.config
	if config.Text != nil {
		config = config.Text
	}
	if config.Position != "" && config.Position != "absolute" {
		return fmt.Errorf("%s has position_embedding_type %q, and absolute is read", d.path, config.Position)
	}
	if config.Decoder {
		return fmt.Errorf("%s has is_decoder = true, and encoders are read", d.path)
	}
	words, err := d.size("text/embeddings/word/weight", 0)
	if err != nil {
		return err
	}
	width, err := d.size("text/embeddings/word/weight", 1)
	if err != nil {
		return err
	}
	positions, err := d.size("text/embeddings/position/weight", 0)
	if err != nil {
		return err
	}
	hidden, err := d.size("text/layers/00/ffn/intermediate/weight", 0)
	if err != nil {
		return err
	}
	depth, fusion := d.depth("text/layers/"), 0
	for d.has(fmt.Sprintf("text/layers/%02d/crossattention/query/weight", depth-fusion-1)) {
		fusion++
	}
	said := config.Heads
	if d.openCLIP != nil && said == 0 {
		said = d.openCLIP.Model.Text.Heads
	}
	if v, ok := d.values["text/relative/weight"]; ok {
		said = v.shape[1]
	}
	heads, err := d.heads("text", said, width)
	if err != nil {
		return err
	}
	if o.activation, err = activation("hidden_act", config.HiddenAct, o.activation); err != nil {
		return err
	}
	for _, c := range []struct {
		key      string
		said, is int
	}{
		{"hidden_size", config.HiddenSize, width}, {"num_hidden_layers", config.Layers, depth},
		{"intermediate_size", config.Intermediate, hidden}, {"vocab_size", config.Vocab, words},
	} {
		if err := d.agrees(c.key, c.said, c.is); err != nil {
			return err
		}
	}
	d.epsilon("text", o.style, config.Eps, o.eps)
	if d.pooling != nil {
		switch {
		case d.pooling.Mean || d.pooling.Mode == "mean":
			o.pool = "mean"
		case d.pooling.Class || d.pooling.Mode == "cls":
			o.pool = "class"
		default:
			d.note("1_Pooling/config.json has another pooling than cls and mean: %s is taken", o.pool)
		}
	}
	d.set("model.text.style", o.style)
	d.set("model.text.layers", depth-fusion)
	d.set("model.text.fusion_layers", fusion)
	d.set("model.text.width", width)
	d.set("model.text.heads", heads)
	d.set("model.text.mlp", hidden)
	d.set("model.text.positions", positions)
	d.set("model.text.activation", o.activation)
	d.set("model.text.pool", o.pool)
	if o.tokens {
		d.set("data.tokens", positions)
	}
	return nil
}

// towers sets the keys of a dual encoder, or of the one tower that is there.
func (d *description) towers(image imageFacts, text textFacts) error {
	hasImage, hasText := d.depth("image/blocks/") > 0, d.depth("text/layers/") > 0
	if hasImage && hasText {
		d.set("model.system", "clip")
		d.set("objective.itm.weight", 0) // these two read fusion layers
		d.set("objective.mlm.weight", 0)
	}
	if hasImage {
		if err := d.image(image); err != nil {
			return err
		}
	}
	if hasText {
		if err := d.text(text); err != nil {
			return err
		}
	}
	return d.head()
}

// head sets the keys of [model.head], where there is a projection.
func (d *description) head() error {
	projected := func(side string) bool { return d.has(side + "_proj/weight") }
	if !projected("image") && !projected("text") {
		return nil
	}
	for _, side := range []string{"image", "text"} {
		if projected(side) {
			dim, err := d.size(side+"_proj/weight", 0)
			if err != nil {
				return err
			}
			d.set("model.head.dim", dim)
			break
		}
	}
	for _, side := range []string{"image", "text"} {
		if !projected(side) && d.depth(side+"/") > 0 {
			d.set("model.head.identity", side)
		}
	}
	return nil
}

// padding tells another id of padding than that by which positions are read.
func (d *description) padding() error {
	if p := d.config.PadID; p != nil && *p != padded-1 {
		return fmt.Errorf("%s has pad_token_id %d, by which positions are numbered, and %d is read", d.path, *p, padded-1)
	}
	return nil
}

// root is the square root of n, rounded down.
func root(n int) int { return int(math.Sqrt(float64(max(0, n)))) }

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
