package explain

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/model"
)

// Comparison is what the score of an interaction is made of, with names for the tokens that take part.
type Comparison struct {
	Image, Text []string        // patches and regions by their numbers, from 0 on, and words
	Terms       []explain.Terms // a direction each; their sum is the score

	first int // of Image, the place of the first one among patches or regions
}

// Direction names one of the directions as the configuration does.
func Direction(t explain.Terms) string {
	if t.ImageQueries {
		return interact.DirectionImageToText
	}
	return interact.DirectionTextToImage
}

// compared adds what an interaction's score is made of, and with FormulaTerms what patches and words add.
func (x *Explainer) compared(r *Relevance, e *model.Explained) {
	c := e.Compared
	own := &Comparison{Terms: c.Terms, first: c.Image.First}
	for i := range c.Image.N {
		name := fmt.Sprint(c.Image.First + i)
		if c.Image.First+i < 0 {
			name = "class"
		}
		own.Image = append(own.Image, name)
	}
	for l := range c.Text.N {
		own.Text = append(own.Text, x.nameOf(c.Text.First+l))
	}
	r.Compared = own
	for _, w := range x.words {
		m := make([]float64, e.Image.N)
		var of []int
		for _, p := range w.places {
			if l := p - c.Text.First; l >= 0 && l < c.Text.N {
				of = append(of, l)
			}
		}
		for _, l := range of {
			for i, v := range own.ofWord(l) {
				if at := c.Image.First + i; at >= 0 {
					m[at] += v / float64(len(of))
				}
			}
		}
		r.WordMaps = append(r.WordMaps, *x.patches(m))
	}
	if x.formula != FormulaTerms {
		return
	}
	image, places := make([]float64, e.Image.N), make([]float64, e.Text.N)
	for _, t := range c.Terms {
		for i, v := range t.ByImage() {
			if at := c.Image.First + i; at >= 0 {
				image[at] += v
			}
		}
		for l, v := range t.ByText() {
			places[c.Text.First+l] += v
		}
	}
	r.Image, r.Words = x.patches(image), spread(x.words, places)
}

// nameOf names the token at a place of the text: its word, or where that has several tokens the token.
func (x *Explainer) nameOf(place int) string {
	i := slices.IndexFunc(x.words, func(w textWord) bool { return slices.Contains(w.places, place) })
	if i >= 0 && len(x.words[i].places) == 1 {
		return x.words[i].text
	}
	return x.t.Tokenizer.Token(x.ids[place])
}

// asking returns the direction in which the tokens of the text, or of the image, are the queries, or the
// other one where there is no such direction.
func (c *Comparison) asking(image bool) explain.Terms {
	for _, t := range c.Terms {
		if t.ImageQueries == image {
			return t
		}
	}
	return c.Terms[0]
}

// ofWord returns what token l of the text sees of the tokens of the image, or how they see it.
func (c *Comparison) ofWord(l int) []float64 {
	t := c.asking(false)
	out := make([]float64, len(c.Image))
	for i := range out {
		out[i] = t.Matrix[t.At(l, i)]
	}
	return out
}

// ofImage returns what patch or region i sees of the tokens of the text, or how they see it.
func (c *Comparison) ofImage(i int) []explain.Word {
	t := c.asking(true)
	out := make([]explain.Word, len(c.Text))
	for l, w := range c.Text {
		out[l] = explain.Word{Text: w, Value: t.Matrix[t.At(l, i-c.first)]}
	}
	return out
}

// heatmap is the table of a direction, words by patches or regions.
func (c *Comparison) heatmap(t explain.Terms) explain.Heatmap {
	h := explain.Heatmap{Rows: c.Text, Columns: c.Image, Values: make([]float64, len(c.Text)*len(c.Image))}
	at := func(l, i int) int { return l*len(c.Image) + i }
	for l := range c.Text {
		for i := range c.Image {
			h.Values[at(l, i)] = t.Matrix[t.At(l, i)]
		}
	}
	for q, k := range t.Chosen {
		if t.ImageQueries {
			h.Marked = append(h.Marked, at(k, q))
		} else {
			h.Marked = append(h.Marked, at(q, k))
		}
	}
	figures := []explain.Figures{{Name: "r", Values: t.Values}, {Name: "weight", Values: t.Weights},
		{Name: "adds", Values: t.Query()}}
	if t.ImageQueries {
		h.Below = figures
	} else {
		h.Beside = figures
	}
	return h
}
