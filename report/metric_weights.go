package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/median"
	"gonum.org/v1/gonum/mat"
)

// weightPanels draws what the weights of a metric are besides where they stand: of a diagonal the weights in their
// order and how often they are, of a dense metric its singular values. x are the departures from the identity, with 0
// for what is not finite.
func weightPanels(m Metric, x []float64) []panel {
	switch m.Form {
	case Diag:
		w := make([]float64, len(x))
		for i, v := range x {
			w[i] = v + 1
		}
		slices.SortFunc(w, func(a, b float64) int { return cmp.Compare(b, a) })
		below := 0
		for _, v := range w {
			if v < 0 {
				below++
			}
		}
		return []panel{
			{SVG: ranked(m.Name+", sorted", w), Caption: fmt.Sprintf("The weights from the largest, %s, to the smallest, %s. %d of %d are below 0.", short(w[0]), short(w[len(w)-1]), below, len(w))},
			{SVG: hills(m.Name+", how often", "weight", []hill{{values: w, hue: "c0"}}, chartWidth), Caption: fmt.Sprintf("Median %s. Training begins with all weights at 1.", short(median.Of(w)))},
		}
	case Dense:
		if m.C > mostSingular {
			return []panel{{Caption: fmt.Sprintf("Singular values are drawn of up to %d channels.", mostSingular)}}
		}
		s := singular(x, m.C, cmp.Or(m.Rank, m.C))
		if s == nil {
			return nil
		}
		sum, squares := 0.0, 0.0
		for _, v := range s {
			sum, squares = sum+v, squares+v*v
		}
		return []panel{{SVG: ranked(m.Name+", singular values", s),
			Caption: fmt.Sprintf("The singular values of W from %s to %s. Those of the identity are 1. As many equal ones as %s of them would have the same sum and sum of squares.",
				short(s[0]), short(s[len(s)-1]), short(sum*sum/max(squares, math.SmallestNonzeroFloat64)))}}
	}
	return nil
}

// mostSingular is the side of the largest matrix whose singular values are found: 1024^3 operations take seconds.
const mostSingular = 1024

// singular returns the singular values of the first rows of the identity plus departures x (n, n), the largest first;
// nil where they are not found.
func singular(x []float64, n, rows int) []float64 {
	w := mat.NewDense(n, n, slices.Clone(x))
	for i := range rows {
		w.Set(i, i, w.At(i, i)+1)
	}
	var svd mat.SVD
	if !svd.Factorize(w, mat.SVDNone) {
		return nil
	}
	return svd.Values(nil)
}

// ranked draws values in their order, with a level at 1.
func ranked(title string, values []float64) template.HTML {
	points := make([]Point, len(values))
	for i, v := range values {
		points[i] = Point{Step: float64(i + 1), Value: v}
	}
	ch := chart{title: title, x: "rank", curves: []curve{{name: title, points: points, dots: len(values) <= 64}},
		levels: []level{{1, "identity"}}}
	return ch.draw()
}
