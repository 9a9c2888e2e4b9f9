package report

import "strings"

// Across is a metric of several methods as a key takes several values, such as recall as the
// number of pairs grows.
type Across struct {
	Title string
	Key   string // of the configuration
	Lines []AcrossLine
}

// AcrossLine is a method.
type AcrossLine struct {
	Name   string
	Points []AcrossPoint // by rising value
}

// AcrossPoint is the mean over the seeds at a value; Spread is the standard deviation, NaN with one
// seed.
type AcrossPoint struct{ At, Mean, Spread float64 }

// across draws a chart per metric, all methods in each.
func (a Ablation) across() section {
	s := section{ID: "across", Title: "Across",
		Intro: "Lines are means over the seeds, bands one standard deviation to both sides."}
	var names []string
	for _, x := range a.Across {
		ch := chart{title: x.Title, x: x.Key[strings.LastIndexByte(x.Key, '.')+1:], logX: true, wide: true}
		for _, l := range x.Lines {
			i := indexOrAppend(&names, l.Name)
			k := curve{colour: i, dots: true}
			for _, p := range l.Points {
				k.points = append(k.points, Point{p.At, p.Mean})
				if p.Spread == p.Spread {
					k.low, k.high = append(k.low, Point{p.At, p.Mean - p.Spread}),
						append(k.high, Point{p.At, p.Mean + p.Spread})
				}
			}
			if len(k.low) < len(k.points) {
				k.low, k.high = nil, nil
			}
			ch.curves = append(ch.curves, k)
		}
		s.add(ch, "")
	}
	s.Legend = legend(names)
	return s
}

// indexOrAppend returns the place of a name in a list, at whose end it is added where it is new.
func indexOrAppend(names *[]string, name string) int {
	for i, n := range *names {
		if n == name {
			return i
		}
	}
	*names = append(*names, name)
	return len(*names) - 1
}
