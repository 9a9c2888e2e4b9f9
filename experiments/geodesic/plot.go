package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawGrowth draws seconds over the size of the pool and over the number of centres.
func drawGrowth(out string, byPoints, byClusters []size) error {
	var panels []*plot.Plot
	for _, p := range []struct {
		title, axis string
		list        []size
		x           func(size) int
	}{
		{"growing pool", "N, entries of the pool", byPoints, func(s size) int { return s.points }},
		{"growing graph", "K, bottom centres", byClusters, func(s size) int { return s.clusters }},
	} {
		if len(p.list) == 0 {
			continue
		}
		fixed := fmt.Sprintf(", K = %d", p.list[len(p.list)-1].clusters)
		if p.axis[0] == 'K' {
			fixed = fmt.Sprintf(", N = %d", p.list[0].points)
		}
		panel, err := growthPanel(p.title+fixed, p.axis, p.list, p.x)
		if err != nil {
			return err
		}
		panels = append(panels, panel)
	}
	return save(panels, 12*vg.Centimeter, 9*vg.Centimeter, out)
}

func growthPanel(title, axis string, list []size, x func(size) int) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, axis, "seconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, 3*vg.Millimeter
	p.Title.Padding = vg.Millimeter
	p.Add(plotter.NewGrid())
	var ticks plot.ConstantTicks
	for _, s := range list {
		ticks = append(ticks, plot.Tick{Value: float64(x(s)), Label: fmt.Sprint(x(s))})
	}
	p.X.Tick.Marker = ticks
	var lines []any // names and points
	for _, l := range []struct {
		name string
		y    func(size) float64
	}{
		{"rebuild", func(s size) float64 { return s.rebuild }},
		{"geodesic scores, step", func(s size) float64 { return s.geodesic }},
		{"cosine scores, step", func(s size) float64 { return s.cosine }},
		{"insert, step", func(s size) float64 { return s.attach }},
	} {
		points := make(plotter.XYs, len(list))
		for i, s := range list {
			points[i] = plotter.XY{X: float64(x(s)), Y: max(l.y(s), 1e-7)} // a clock may say 0, which has no logarithm
		}
		lines = append(lines, l.name, points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return nil, err
	}
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max))+1.5) // room for the legend
	return p, nil
}

// drawDirections draws bars of the cosine to the positive and of the effective ranks.
func drawDirections(out string, list []direction) error {
	var panels []*plot.Plot
	for i, b := range []struct {
		title string
		value func(direction) float64
	}{
		{"mean cosine of -dL/dF with\nthe direction to the positive", func(d direction) float64 { return d.positive }},
		{"effective rank of the\ngradients of all rows", func(d direction) float64 { return d.ofSet }},
	} {
		p := plot.New()
		p.Title.Text, p.Title.Padding = b.title, 2*vg.Millimeter
		var values plotter.Values
		var names []string
		for k := len(list) - 1; k >= 0; k-- { // from the bottom
			values = append(values, b.value(list[k]))
			names = append(names, list[k].mode)
		}
		bars, err := plotter.NewBarChart(values, vg.Points(12))
		if err != nil {
			return err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, plotutil.Color(2*i), 0
		p.Add(plotter.NewGrid(), bars)
		p.NominalY(names...)
		p.X.Min, p.X.Max = min(0, p.X.Min), 1.05*p.X.Max
		panels = append(panels, p)
	}
	return save(panels, 13*vg.Centimeter, 9*vg.Centimeter, out)
}

// save draws panels of a size side by side.
func save(panels []*plot.Plot, width, height vg.Length, out string) (err error) {
	const gap = 4 * vg.Millimeter
	n := vg.Length(len(panels))
	c, err := draw.NewFormattedCanvas(n*width, height, strings.TrimPrefix(filepath.Ext(out), "."))
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	tiles := draw.Tiles{Cols: len(panels), Rows: 1, PadX: gap, PadTop: gap / 2, PadBottom: gap / 2, PadLeft: gap / 2,
		PadRight: gap}
	for i, canvas := range plot.Align([][]*plot.Plot{panels}, tiles, draw.New(c))[0] {
		panels[i].Draw(canvas)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if _, err = c.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
