package weights

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// Setting is a key of the configuration and the value that a model has there.
type Setting struct {
	Key   string
	Value string // as TOML spells it
	// Assumed: no file says it, and a note says why it is taken.
	Assumed bool
}

// String is the setting as --set and a file take it.
func (s Setting) String() string { return s.Key + "=" + s.Value }

// description collects the settings of a model. Sizes are those of its parameters; what these do not show
// is in the files beside them, or a note says what was assumed.
type description struct {
	*facts
	*fit
	file     *File
	named    bool // the family was asked for by its name
	settings []Setting
	notes    []string
	// of a tower that starts from the weights, and not of the encoder as a whole
	towerNotes []string
	unlike     []string              // see Model.Unlike
	layers     []encoders.DenseLayer // behind the pools, see head
	assumed    map[string]bool       // keys whose values no file says
	down       bool                  // the centre of an image begins as in Hugging Face
	smooth     bool                  // the family's program resamples positions of images with antialias=True
}

// imageFacts and textFacts are what the towers of a family have where no file says other.
type (
	imageFacts struct {
		style, activation, pool string
		eps                     float64 // of the style
		said                    float64 // by a file; 0: none says it
		heads                   int     // 0: no file says it
		preprocess              preprocess
		block                   *encoders.ImageBlock // of style block, what no tensor shows; nil: of another style
	}
	textFacts struct {
		style, activation, pool string
		eps                     float64
		said                    float64 // epsilon by a file; 0: none says it
		heads                   int
		tokens                  bool // texts have as many tokens as there are positions, where no file says less
	}
)

// ofClass is what a class of Hugging Face has where its config.json leaves the key out; 0 without such a file.
func ofClass[T int | float64](d *description, v T) T {
	if d.config.ModelType == "" {
		return 0
	}
	return v
}

func (d *description) has(name string) bool { _, ok := d.values[name]; return ok }

func (d *description) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(d.notes, s) {
		d.notes = append(d.notes, s)
	}
}

// differs notes what of both sides together no configuration here computes.
func (d *description) differs(format string, args ...any) {
	d.note(format, args...)
	d.unlike = append(d.unlike, fmt.Sprintf(format, args...))
}

// assume marks keys, which are set later, as said by no file.
func (d *description) assume(keys ...string) {
	if d.assumed == nil {
		d.assumed = map[string]bool{}
	}
	for _, key := range keys {
		d.assumed[key] = true
	}
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
	d.settings = append(d.settings, Setting{key, text, d.assumed[key]})
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
			if i, ok := encoders.LayerOf(name); ok {
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
		d.assume("model." + side + ".heads")
		d.note("no file says how many heads the %s tower has: %d are assumed, as is usual for its width %d", side, said,
			width)
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
	return "", fmt.Errorf("%s is %q, and gelu, gelu_pytorch_tanh, gelu_new, gelu_fast and quick_gelu are read", key,
		name)
}

// epsilon sets the epsilon of the layer norms of a tower, where a file says another than that of its style.
func (d *description) epsilon(side string, said, is float64) {
	if said != 0 && math.Abs(said-is) > 1e-3*is {
		d.set("model."+side+".eps", said)
	}
}

// towers sets the keys of a dual encoder, or of the one tower that is there.
func (d *description) towers(image imageFacts, text textFacts) error {
	return d.sides(d.vision(image), d.words(text))
}

// vision and words set the keys of a tower, where it is there.
func (d *description) vision(o imageFacts) func() error { return func() error { return d.image(o) } }
func (d *description) words(o textFacts) func() error   { return func() error { return d.text(o) } }

// sides sets the keys of a dual encoder, or of the one tower that is there.
func (d *description) sides(image, text func() error) error {
	hasImage, hasText := d.hasSide("image"), d.hasSide("text")
	if hasImage && hasText {
		d.set("model.system", "clip")
		d.set("objective.itm.weight", 0) // these two read fusion layers
		d.set("objective.mlm.weight", 0)
	}
	if hasImage {
		if err := image(); err != nil {
			return err
		}
	}
	if hasText {
		if err := text(); err != nil {
			return err
		}
	}
	return d.head()
}

// head sets the keys of [model.head] of two towers, or of one with a projection. A side without a projection has layers
// behind its pool, or is as wide as the space.
func (d *description) head() error {
	projected := func(side string) bool { return d.has(side + "_proj/weight") }
	if one := !d.hasSide("image") || !d.hasSide("text"); one && !projected("image") && !projected("text") {
		return nil
	}
	dims, identity, list := map[string]int{}, "", []string{}
	for _, side := range []string{"image", "text"} {
		if !d.hasSide(side) {
			continue
		}
		dim, err := d.towerWidth(side)
		if err != nil {
			return err
		}
		if projected(side) {
			if dim, err = d.size(side+"_proj/weight", 0); err != nil {
				return err
			}
		} else if identity = side; len(dims) > 0 && !projected("image") {
			identity = "both"
		}
		for _, l := range d.layers {
			if l.Side == side {
				dim, list = l.Width, append(list, strconv.Quote(l.String()))
			}
		}
		dims[side] = dim
	}
	two := len(dims) == 2
	if two && dims["image"] != dims["text"] {
		return fmt.Errorf("its sides give vectors of %d and %d channels, which are of no space for both: is it complete?", dims["image"], dims["text"])
	}
	dim, m := max(dims["image"], dims["text"]), d.classes("image/cls_token")
	d.set("model.head.dim", dim*max(1, m))
	if m > 1 {
		d.set("model.head.topology", fmt.Sprintf("Multi(%d,%d)", dim, m))
	}
	if identity != "" {
		d.set("model.head.identity", identity)
	}
	if two && len(list) > 0 {
		d.settings = append(d.settings, Setting{Key: "model.head.dense", Value: "[" + strings.Join(list, ", ") + "]"})
	}
	return nil
}

// towerWidth is the channels of a token of a side.
func (d *description) towerWidth(side string) (int, error) {
	if side == "text" {
		return d.size("text/embeddings/word/weight", 1)
	}
	for _, s := range d.settings { // of a network of convolutions
		if s.Key == "model.image.convnet.pool_width" {
			return strconv.Atoi(s.Value)
		}
	}
	if d.has("image/pool/pos_embed") {
		return d.size("image/pool/pos_embed", 1)
	}
	return d.size("image/patch_embed/weight", 0)
}
