package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// smoothing is the standard deviation of the smoothed lines as a share of the run.
const smoothing = 0.015

// smoothed is a chart of one curve: its raw values pale, their local mean on top.
func (d Data) smoothed(title, unit, name string, colour int) chart {
	points := d.Curves.get(name)
	ch := chart{title: title, unit: unit}
	if d.Curves != nil {
		ch.last = d.Curves.Last
	}
	line := d.Curves.local(name)
	if len(points) >= 8 {
		ch.curves = append(ch.curves, curve{points: points, faint: true, colour: colour})
	}
	ch.curves = append(ch.curves, curve{name: title, points: line, colour: colour})
	if n := len(points); n > 0 {
		ch.note = "last " + short(points[n-1].Value)
	}
	return ch
}

// lossSection draws the total and every part.
func lossSection(d Data) section {
	s := section{ID: "loss", Title: "Loss",
		Intro: "Pale: as logged. Strong: the local mean. Each part as it is before its weight; the total is the weighted sum."}
	names := d.Curves.Names("loss/")
	if len(d.Curves.get("loss")) > 0 {
		names = append([]string{"loss"}, names...)
	}
	if len(names) == 0 {
		s.Missing = "The log has no loss."
		return s
	}
	for i, name := range names {
		title := strings.TrimPrefix(name, "loss/")
		if name == "loss" {
			title = "total"
		}
		ch := d.smoothed(title, "", name, i)
		if title == "itc_in_batch" && d.Batch > 1 || title == "itc" && d.Batch > 1 && !d.Queued &&
			len(d.Curves.get("loss/itc_in_batch")) == 0 {
			ch.levels = append(ch.levels, level{math.Log(float64(d.Batch)), fmt.Sprintf("chance: ln %d", d.Batch)})
		}
		s.add(ch, "")
	}
	for _, name := range d.Curves.Names("") {
		if strings.HasSuffix(name, "_accuracy") && !strings.Contains(name, "/") {
			s.add(d.smoothed(strings.ReplaceAll(name, "_", " "), "share of rows", name, len(names)), "")
		}
	}
	return s
}

func (s *section) add(ch chart, caption string) {
	if svg := ch.draw(); svg != "" {
		s.Panels = append(s.Panels, panel{SVG: svg, Caption: caption, Wide: ch.wide})
	}
}

// stepSection draws what the steps were made with.
func stepSection(d Data) section {
	s := section{ID: "steps", Title: "Steps"}
	for i, x := range []struct {
		name, title, unit string
		log               bool
	}{
		{"temperature", "temperature", "", false},
		{"lr", "learning rate", "", false},
		{"grad_norm", "gradient norm", "before clipping", true},
		{"samples_per_second", "speed", "samples / s", false},
	} {
		ch := d.smoothed(x.title, x.unit, x.name, i)
		if x.name == "lr" || x.name == "temperature" { // no noise to smooth away
			ch.curves = []curve{{name: x.title, points: d.Curves.get(x.name), colour: i}}
		}
		ch.log = x.log && spreads(d.Curves.get(x.name))
		s.add(ch, "")
	}
	if len(s.Panels) == 0 {
		s.Missing = "The log has neither temperature nor learning rate, gradient norm or speed."
	}
	return s
}

// scaled multiplies the values of a curve.
func scaled(p []Point, by float64) []Point {
	out := make([]Point, len(p))
	for i, x := range p {
		out[i] = Point{x.Step, x.Value * by}
	}
	return out
}

// spreads reports whether the values cover more than a factor of 20.
func spreads(p []Point) bool {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range p {
		lo, hi = min(lo, x.Value), max(hi, x.Value)
	}
	return lo > 0 && hi > 20*lo
}

// graphWords explain the figures of a graph over the queue.
var graphWords = map[string]string{
	"centres":       "clusters that hold a point, per level",
	"components":    "parts of the graph without a path between them",
	"usage_entropy": "of the sizes of the clusters, in nats: the higher, the more even",
	"mean_path":     "mean length of a geodesic between points",
	"unreachable":   "pairs without a path",
	"truncated":     "points left out of clusters that were full",
}

// graphSection draws graph/<modality>/<figure>: one chart per figure, one line per
// modality.
func graphSection(d Data) section {
	s := section{ID: "graph", Title: "Graph over the queue",
		Intro: "Figures of each rebuilt graph, from which geodesics are read."}
	var figures, modalities []string
	for _, name := range d.Curves.Names("graph/") {
		modality, figure, ok := strings.Cut(strings.TrimPrefix(name, "graph/"), "/")
		if !ok {
			modality, figure = "", modality
		}
		if !slices.Contains(figures, figure) {
			figures = append(figures, figure)
		}
		if !slices.Contains(modalities, modality) {
			modalities = append(modalities, modality)
		}
	}
	if len(figures) == 0 {
		s.Missing = "The run has no graph over a queue."
		return s
	}
	styles := make([]int, len(modalities))
	for i := range styles { // dashed from the second on: lines often lie on each other
		styles[i] = i%colours + colours*(i%dashes)
	}
	for _, figure := range figures {
		ch := chart{title: strings.ReplaceAll(figure, "_", " "), last: d.Curves.Last}
		for i, m := range modalities {
			name := "graph/" + m + "/" + figure
			if m == "" {
				name = "graph/" + figure
			}
			p := d.Curves.get(name)
			if figure == "seconds" {
				p = scaled(p, 1e3)
				ch.title, ch.unit = "time to rebuild", "ms"
			}
			ch.curves = append(ch.curves, curve{name: m, points: p, colour: styles[i]})
		}
		s.add(ch, graphWords[figure])
	}
	if len(modalities) > 1 {
		s.Legend = legend(modalities, styles...)
	}
	return s
}
