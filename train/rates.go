package train

import (
	"fmt"
	"math"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
)

// Rates says how fast each parameter learns, times the learning rate. The zero value is 1 for all.
type Rates struct{ image, text towerRate }

// towerRate is the rates of a tower of some layers.
type towerRate struct {
	factor, decay float64
	layers        int
}

// NewRates returns the rates of a configuration: init.image.lr_factor and layer_decay, and those of
// init.text.
func NewRates(c config.Config) Rates {
	var r Rates
	m, i, t := c.Model, c.Init.Image, c.Init.Text
	if !c.Has(section.Stored) && !m.Image.Freeze {
		r.image = towerRate{i.LRFactor, i.LayerDecay, m.Image.Depth}
		if !m.Image.Transforms() {
			r.image = towerRate{i.LRFactor, 1, 1} // alike for all of it: there are no blocks
		}
	}
	if !c.Has(section.Stored) && !c.Has(section.ImagesAlone) && (!m.Text.Freeze || m.Text.FusionLayers > 0) {
		r.text = towerRate{t.LRFactor, t.LayerDecay, m.Text.Layers + m.Text.FusionLayers*c.Pictures()}
	}
	return r
}

// Of returns the rate of the parameter of a name. Block i of d has factor * decay^(d-i), counted from 0, as in BEiT
// (Bao et al. 2022): what comes before the blocks decay^(d+1), and what comes after them the factor alone. Heads and
// temperatures are of no tower, and neither is what the text tower has for other parts: cross-attention and the head of
// masked language modelling.
func (r Rates) Of(name string) float64 {
	side, rest, _ := strings.Cut(name, "/")
	var t towerRate
	switch {
	case side == "image":
		t = r.image
	case side == "text" && !strings.Contains(rest, "crossattention/") && !strings.HasPrefix(rest, "mlm/"):
		t = r.text
	}
	if t.layers == 0 {
		return 1
	}
	// 0 is 1 in optim.Segment
	return max(t.factor*math.Pow(t.decay, float64(t.below(rest))), math.SmallestNonzeroFloat64)
}

// below returns by how many steps of the decay a parameter lies below the end of its tower.
func (t towerRate) below(name string) int {
	if i, ok := encoders.LayerOf(name); ok {
		return t.layers - i
	}
	switch part, _, _ := strings.Cut(name, "/"); part {
	case "norm", "pool", "pooler":
		return 0
	}
	return t.layers + 1
}

// sides lists the towers that learn at a rate of their own.
func (r Rates) sides() (list []sideRate) {
	for _, x := range []sideRate{{"image", r.image}, {"text", r.text}} {
		if x.layers > 0 && (x.factor != 1 || x.decay != 1) {
			list = append(list, x)
		}
	}
	return list
}

// sideRate is the rates of a tower with its name.
type sideRate struct {
	side string
	towerRate
}

// at appends the rates of the last blocks of the towers of sides, for the log.
func (r Rates) at(list []Value, lr float64) []Value {
	for _, x := range r.sides() {
		list = append(list, Value{Name: "lr/" + x.side, Value: lr * x.factor * x.decay, Measure: true})
	}
	return list
}

// String says which towers learn at another rate, empty where none does.
func (r Rates) String() string {
	var parts []string
	for _, x := range r.sides() {
		if x.decay == 1 {
			parts = append(parts, fmt.Sprintf("%s tower %g", x.side, x.factor))
		} else {
			parts = append(parts, fmt.Sprintf("%s tower %.3g (embeddings) to %.3g (last block)", x.side,
				x.factor*math.Pow(x.decay, float64(x.layers+1)), x.factor*x.decay))
		}
	}
	return strings.Join(parts, ", ")
}
