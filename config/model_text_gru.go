package config

// GRU is what a text tower of model.text.style = "gru" is besides model.text.
type GRU struct {
	Embedding  int    `toml:"embedding" fixed:"model" max:"65536"` // channels of the embedding of a word
	Directions string `toml:"directions" fixed:"model"`            // forward (words are read from the first to the last) | mean (both directions, averaged) | concat (both, side by side, with half of model.text.width each)
}

// Values of model.text.gru.directions.
const (
	GRUForward = "forward"
	GRUMean    = "mean"
	GRUConcat  = "concat"
)

func (g *GRU) defaults() { *g = GRU{Embedding: 300, Directions: GRUMean} }

func (g *GRU) check(k *checker, c *Config) {
	k.NotNegative("model.text.gru.embedding")
	if c.hasGRU() {
		k.Positive("model.text.gru.embedding")
	}
	if c.hasGRU() || g.Directions != "" {
		k.OneOf("model.text.gru.directions", GRUForward, GRUMean, GRUConcat)
	}
	k.Require("model.text.width", !c.hasGRU() || g.Directions != GRUConcat || c.Model.Text.Width%2 == 0, "must be even with model.text.gru.directions \"concat\", which halves it")
}

// hasGRU says whether texts pass recurrent units.
func (c *Config) hasGRU() bool {
	return c.Model.traits().words && c.Model.Text.Style == StyleGRU
}

// directions are how many there are, and the width of a state of one.
func (t Text) directions() (n, width int) {
	switch t.GRU.Directions {
	case GRUForward:
		return 1, t.Width
	case GRUConcat:
		return 2, t.Width / 2
	}
	return 2, t.Width
}

// GRUWeights returns the weights of the recurrent layers of model.text.style = "gru".
func (t Text) GRUWeights() float64 {
	n, h := t.directions()
	in := float64(t.GRU.Embedding + (t.Layers-1)*n*h) // of all layers
	return 3 * float64(n) * float64(h) * (in + float64(t.Layers)*float64(h))
}

// GRUGates returns the channels of a token that the backward pass of those layers reads: the gates of each direction.
func (t Text) GRUGates() int {
	n, h := t.directions()
	return 4 * n * h * t.Layers
}

// gruValues returns the channels of a token of the widest array: its gates or its embedding.
func gruValues(t Text) int {
	_, h := t.directions()
	return max(4*h, t.GRU.Embedding)
}
