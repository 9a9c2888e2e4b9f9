package train

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights"
	"gorgonia.org/tensor"
)

// elsewhere returns the name of the parameter of a pre-trained model that one of a downstream task starts from where a
// checkpoint has none of its own; empty for none.
func elsewhere(name string, now config.Model) string {
	// of answers and captions: fusion layers, words and head (ALBEF's VQA)
	if part, ok := strings.CutPrefix(name, "decoder/"); ok {
		return decoderFrom(part, now.Text.Layers)
	}
	return ""
}

// decoderStarts are the parameters of a group of a checkpoint whose layers have taken in all that tunes them, for the
// decoder of a model, which is not tuned. It is nil where the model keeps nothing beside its layers.
func decoderStarts(c *checkpoint.Checkpoint, group string, was config.Model, keep Kept,
	names []string) (map[string]weights.Param, error) {
	if keep == nil {
		return nil, nil
	}
	list, err := Params(c, group, was, nil)
	if err == nil {
		list, err = forPictures(list, names, c.Path)
	}
	return byName(list), err
}

// startOf chooses where a parameter starts from: of the parameters of a checkpoint, or, what a decoder takes from other
// layers, of those without tuning.
func startOf(name string, from, plain map[string]weights.Param, now config.Model) map[string]weights.Param {
	if _, own := from[name]; !own && plain != nil && elsewhere(name, now) != "" {
		return plain
	}
	return from
}

// decoderFrom is elsewhere for a parameter of the decoder, whose first layer is the first behind so many text layers.
func decoderFrom(part string, textLayers int) string {
	number, rest, ok := strings.Cut(strings.TrimPrefix(part, "layers/"), "/")
	i, err := strconv.Atoi(number)
	if !strings.HasPrefix(part, "layers/") || !ok || err != nil {
		return "text/" + part
	}
	return fmt.Sprintf("text/layers/%02d/%s", i+textLayers, rest)
}

// renamed returns q as the checkpoint has it under another name, in the shape of q; false where it has nothing that
// fits, such as keys of the states of questions in a model whose fusion layers read images of another width.
func renamed(from map[string]weights.Param, q *model.Param, now config.Model) (weights.Param, bool) {
	name := cmp.Or(elsewhere(q.Name, now), q.Name)
	x, ok := from[name]
	if !ok {
		x, ok = from[lastFusion(from, name)]
	}
	return x, ok && fits(x.Shape, q)
}

// fits says whether a parameter of that shape is the start of q: it has the same one, or is a table of words with fewer
// rows.
func fits(shape []int, q *model.Param) bool {
	if tensor.Shape(shape).Eq(q.Shape) {
		return true
	}
	words := strings.HasSuffix(q.Name, "embeddings/word/weight") || strings.HasSuffix(q.Name, "mlm/bias")
	return words && len(shape) == len(q.Shape) && shape[0] < q.Shape[0] && slices.Equal(shape[1:], q.Shape[1:])
}

// lastFusion returns the name of a parameter of a fusion layer behind those of the checkpoint, in its last one: a layer
// that attends to pictures already is a better start than random numbers. Where texts have two pictures that is the
// last layer of the same picture. Empty for any other parameter.
func lastFusion(from map[string]weights.Param, name string) string {
	layer, rest, ok := cutLayer(name)
	if !ok {
		return ""
	}
	x, ok := crossedBy(slices.Collect(maps.Keys(from)))
	if !ok || layer <= x.last {
		return ""
	}
	each := 1
	if x.paired {
		each = 2
	}
	return fmt.Sprintf("%s%02d/%s", textLayers, x.last+1-each+(layer-x.last-1)%each, rest)
}
