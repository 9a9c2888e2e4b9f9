package report

import (
	"fmt"
	"io"
)

// Forecast is how alike two files of features are, as a page shows it.
type Forecast struct {
	Title    string
	Facts    []Fact
	Advice   string
	Measures []ForecastMeasure
}

// ForecastMeasure is a measure of pairs beside what it is when they are shuffled.
type ForecastMeasure struct {
	Name      string
	About     string // what it is, a sentence
	Value     float64
	Null      float64 // mean over shuffles
	Deviation float64 // standard deviation over shuffles
	P         float64 // share of shuffles that reach Value
}

// WriteForecast writes the page of a forecast.
func WriteForecast(w io.Writer, f Forecast) error {
	p := page{Title: f.Title, Kind: "forecast of an alignment", Facts: f.Facts, Notes: []string{f.Advice}}
	s := section{ID: "measures", Title: "Measures",
		Intro: "Each measure of the pairs beside its mean over shuffled pairs, whose bar has one standard deviation to both sides."}
	t := Table{Head: []string{"measure", "pairs", "shuffled", "deviation", "share of shuffles that reach it"}}
	for _, m := range f.Measures {
		bars := Bars{Title: m.Name, Bars: []Bar{{Name: "pairs", Mean: m.Value},
			{Name: "shuffled", Mean: m.Null, Spread: m.Deviation, Run: 1}}}
		s.Panels = append(s.Panels, panel{SVG: bars.draw(), Caption: m.About, Wide: true})
		t.Rows = append(t.Rows, Texts(m.Name, fmt.Sprintf("%.3f", m.Value), fmt.Sprintf("%.3f", m.Null),
			fmt.Sprintf("%.3f", m.Deviation), fmt.Sprintf("%.2f", m.P)))
	}
	s.Tables = []Table{t}
	p.show(s)
	return p.write(w)
}
