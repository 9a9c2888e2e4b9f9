package model

import (
	"math"

	"github.com/geoalign/geoalign/objectives/geodesic"
)

// Describe keeps the figures of the newest graphs for the log: graph/<modality>/<figure>.
func (g *Graphs) Describe() {
	g.values = g.values[:0]
	for _, m := range []struct {
		name  string
		graph *geodesic.Graph
	}{{"image", g.Image}, {"text", g.Text}} {
		if m.graph == nil {
			continue
		}
		s := m.graph.Stats()
		components := 0
		for _, l := range s.Layers {
			components += l.Components
		}
		for _, v := range []Part{
			{Name: "centres", Value: float64(m.graph.Used)},
			{Name: "components", Value: float64(components)},
			{Name: "usage_entropy", Value: s.Entropy},
			{Name: "mean_path", Value: s.Path},
			{Name: "unreachable", Value: s.Unreached},
			{Name: "truncated", Value: s.Truncated},
			{Name: "seconds", Value: s.Seconds},
		} {
			v.Name, v.Measure = "graph/"+m.name+"/"+v.Name, true
			g.values = append(g.values, v)
		}
	}
}

// Figures returns the figures of the newest graphs that are finite numbers, by the names
// they have in the log. They describe the queue as it was when the graphs were switched
// in, so a checkpoint keeps them.
func (g *Graphs) Figures() map[string]float64 {
	figures := map[string]float64{}
	for _, v := range g.values {
		if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			figures[v.Name] = v.Value
		}
	}
	return figures
}
