package model

import "github.com/geoalign/geoalign/objectives/geodesic"

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

// Seconds returns the times that the newest builds took.
func (g *Graphs) Seconds() (s [2]float64) {
	for _, v := range g.values {
		switch v.Name {
		case "graph/image/seconds":
			s[0] = v.Value
		case "graph/text/seconds":
			s[1] = v.Value
		}
	}
	return s
}

func (g *Graphs) setValue(name string, v float64) {
	for i := range g.values {
		if g.values[i].Name == name {
			g.values[i].Value = v
		}
	}
}
