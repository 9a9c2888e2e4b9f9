package align

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// anchors returns unit rows (n, 2) whose products with the query (1, 0) are given.
func anchors(products []float32) []float32 {
	out := make([]float32, 0, 2*len(products))
	for _, v := range products {
		out = append(out, v, float32(math.Sqrt(1-float64(v)*float64(v))))
	}
	return out
}

// TestASIFVector is worked out by hand: k = 2, p = 2, products [.9 .1 .5] of an image and
// [.8 .6 .2] of a text with three anchors.
func TestASIFVector(t *testing.T) {
	e := engine(t)
	p := Pairs{Table{anchors([]float32{.9, .1, .5}), 2}, Table{anchors([]float32{.8, .6, .2}), 2}}
	for _, chunk := range []int{0, 1, 2} {
		fitted := check.Get(ASIF{K: 2, P: 2, Chunk: chunk}.Fit(e, p))(t)
		m := fitted.(*ASIFMap)
		query := []float32{2, 0} // any length
		image := check.Get(m.Apply(e, Image, query))(t)
		near(t, "image", widen(image), []float64{.955524, 0, .294915}, 1e-6)
		text := check.Get(m.Apply(e, Text, query))(t)
		near(t, "text", widen(text), []float64{.871576, .490261, 0}, 1e-6)
		x := check.Get(m.Codes(e, Image, query))(t)
		y := check.Get(m.Codes(e, Text, query))(t)
		near(t, "score", widen(m.Score(e, x, y)), []float64{.832811}, 1e-6)
	}
}

// TestASIFNegative leaves out products below 0, of which an even power would make large ones.
func TestASIFNegative(t *testing.T) {
	e := engine(t)
	rows := Table{anchors([]float32{-.9, .5, -.1}), 2}
	m := check.Get(ASIF{P: 2}.Fit(e, Pairs{rows, rows}))(t)
	got := check.Get(m.Apply(e, Image, []float32{1, 0}))(t)
	near(t, "code", widen(got), []float64{0, 1, 0}, 1e-6)
}

// TestASIFItself scores a row with itself 1 where both sides are one space.
func TestASIFItself(t *testing.T) {
	e := engine(t)
	rows := gauss(1, 20, 4)
	for _, p := range []float64{1, 8, 400} {
		m := check.Get(ASIF{K: 20, P: p}.Fit(e, Pairs{rows, rows}))(t)
		s := scores(t, e, m, rows.Data, rows.Data)
		for i := range 20 {
			near(t, "score", s[i*20+i:][:1], []float64{1}, 1e-5)
		}
	}
}

func TestASIFZeroAnchor(t *testing.T) {
	rows := gauss(1, 20, 4)
	clear(rows.Data[4*7:][:4])
	_, err := ASIF{}.Fit(engine(t), Pairs{gauss(2, 20, 4), rows})
	wantError(t, err, "row 7 of the texts is zero", "leave the pair out")
}

// TestScore compares sparse products with dense ones.
func TestScore(t *testing.T) {
	e := engine(t)
	fitted := check.Get(ASIF{K: 5}.Fit(e, Pairs{gauss(1, 300, 6), gauss(2, 300, 5)}))(t)
	m := fitted.(*ASIFMap)
	images, texts := gauss(3, 270, 6).Data, gauss(4, 9, 5).Data
	x := check.Get(m.Codes(e, Image, images))(t)
	y := check.Get(m.Codes(e, Text, texts))(t)
	near(t, "scores", widen(m.Score(e, x, y)), scores(t, e, m, images, texts), 1e-6)
}
