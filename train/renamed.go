package train

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/weights"
	"gorgonia.org/tensor"
)

// elsewhere returns the name of the parameter of a pre-trained model that one of a downstream task starts from where a checkpoint
// has none of its own; empty for none.
func elsewhere(name string, now config.Model) string {
	if part, ok := strings.CutPrefix(name, "decoder/"); ok { // of answers and captions: fusion layers, words and head (ALBEF's VQA)
		return decoderFrom(part, now.Text.Layers)
	}
	return ""
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

// renamed returns q as the checkpoint has it under another name, in the shape of q; false where it has nothing that fits, such as
// keys of the states of questions in a model whose fusion layers read images of another width.
func renamed(from map[string]weights.Param, q *model.Param, now config.Model) (weights.Param, bool) {
	x, ok := from[elsewhere(q.Name, now)]
	return x, ok && tensor.Shape(x.Shape).Eq(q.Shape)
}
