package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// report writes the fitted numbers, the model beside what was measured, and what it says of more hosts.
func report(w io.Writer, m Measured, fits []Step) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintf(t, "a step of one rank: %.0f ms and %.1f ms a row\n", 1e3*fits[0].Fixed, 1e3*fits[0].PerRow)
	for i, l := range m.Links {
		f := fits[i]
		fmt.Fprintf(t, "\n%s: %.1f Gbit/s, %.0f us a message, an exchange holds up the computation beside it for %.1f times its length\n", l.Name, 8*f.Bandwidth/1e9, 1e6*f.Latency, f.Work)
		for _, s := range l.Steps {
			step, exposed := f.Seconds(s.Ranks, float64(s.Rows))
			fmt.Fprintf(t, "%d ranks of %d rows\tmeasured %.0f ms\tmodel %.0f ms\tof them exposed sums %.0f ms\n",
				s.Ranks, s.Rows, s.MS, 1e3*step, 1e3*exposed)
		}
		fmt.Fprintln(t, "hosts\tstrong\tweak")
		for _, r := range hosts {
			strong := ""
			if m.Batch%r == 0 {
				strong = fmt.Sprintf("%.2f", f.Efficiency(r, m.Batch, false))
			}
			fmt.Fprintf(t, "%d\t%s\t%.2f\n", r, strong, f.Efficiency(r, m.Batch, true))
		}
	}
}

// hosts are the numbers of hosts in the tables.
var hosts = []int{1, 2, 4, 8, 16, 32, 64}

// draw draws the weak efficiency over hosts for each link, and measured ones as dots.
func draw(out string, m Measured, fits []Step) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("share of perfect speed, %d rows on each host", m.Batch)
	p.X.Label.Text, p.Y.Min, p.Y.Max = "hosts", 0, 1.05
	p.X.Scale, p.X.Min, p.X.Max = plot.LogScale{}, 1, float64(hosts[len(hosts)-1])
	var ticks plot.ConstantTicks
	for _, r := range hosts {
		ticks = append(ticks, plot.Tick{Value: float64(r), Label: fmt.Sprint(r)})
	}
	p.X.Tick.Marker = ticks
	p.Add(plotter.NewGrid())
	for i, l := range m.Links {
		var dots plotter.XYs
		alone, _ := fits[i].Seconds(1, float64(m.Batch))
		for _, s := range l.Steps {
			if s.Rows == m.Batch {
				dots = append(dots, plotter.XY{X: float64(s.Ranks), Y: 1e3 * alone / s.MS})
			}
		}
		line := plotter.NewFunction(func(r float64) float64 {
			return fits[i].Efficiency(int(math.Round(r)), m.Batch,
				true)
		})
		line.Color, line.Width, line.Samples = plotutil.Color(i), vg.Points(1.5), int(p.X.Max)
		points, err := plotter.NewScatter(dots)
		if err != nil {
			return err
		}
		points.Color, points.Radius = plotutil.Color(i), vg.Points(3)
		p.Add(line, points)
		p.Legend.Add(l.Name, line)
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, out)
}
