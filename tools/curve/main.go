// Command curve draws the loss curves of one or more runs from their metrics.jsonl.
//
//	go run ./tools/curve -out docs/flickr8k-loss.svg runs/flickr8k/metrics.jsonl
//	go run ./tools/curve -keys loss -smooth 5 -out loss.png fp32=runs/a/metrics.jsonl bf16=runs/b/metrics.jsonl
//
// Runs of one label have one colour. The ending of -out (.svg, .png or .pdf) chooses
// the format.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/train/runlog"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

func main() {
	var f figure
	out := flag.String("out", "loss.svg", "file to write")
	flag.StringVar(&f.title, "title", "", "title of the picture")
	keys := flag.String("keys", "loss,loss/itc,loss/itc_in_batch,loss/itm,loss/mlm", "numbers to draw, separated by commas")
	flag.IntVar(&f.smooth, "smooth", 1, "draw means over this many logged values")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: curve [flags] [LABEL=]METRICS.JSONL...\n\ndraws numbers of runs over their steps")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() < 1 || f.smooth < 1 {
		flag.Usage()
		os.Exit(2)
	}
	f.keys = strings.Split(*keys, ",")
	if err := f.draw(flag.Args(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "curve:", err)
		os.Exit(1)
	}
}

// figure is a picture to draw.
type figure struct {
	title  string
	keys   []string
	smooth int
	names  []string // of the lines so far, each with a colour of its own
	lines  int
}

// draw reads the metrics of the runs and writes the picture out.
func (f *figure) draw(runs []string, out string) error {
	p := plot.New()
	p.Title.Text = f.title
	p.X.Label.Text = "step"
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for _, run := range runs {
		label, path, ok := strings.Cut(run, "=")
		if !ok {
			label, path = "", run
		}
		rows, err := runlog.ReadMetrics(path)
		if err != nil {
			return err
		}
		before := f.lines
		for _, key := range f.keys {
			if err := f.line(p, label, key, rows); err != nil {
				return fmt.Errorf("%s: %s: %w", path, key, err)
			}
		}
		if f.lines == before {
			return fmt.Errorf("%s holds none of %s", path, strings.Join(f.keys, ", "))
		}
	}
	return p.Save(18*vg.Centimeter, 10*vg.Centimeter, out)
}

// line adds the line of one number of one run, if the run has it.
func (f *figure) line(p *plot.Plot, label, key string, rows []runlog.Row) error {
	var points plotter.XYs
	var sum float64
	n := 0
	for _, r := range rows {
		v, ok := r.Values[key]
		if !ok {
			continue
		}
		if sum, n = sum+v, n+1; n == f.smooth {
			points = append(points, plotter.XY{X: float64(r.Step), Y: sum / float64(n)})
			sum, n = 0, 0
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(key, "loss/")
	if label != "" {
		name = label
		if len(f.keys) > 1 {
			name += " " + strings.TrimPrefix(key, "loss/")
		}
	}
	color := slices.Index(f.names, name)
	if color < 0 {
		color = len(f.names)
		f.names = append(f.names, name)
		p.Legend.Add(name, line)
	}
	line.Color, line.Width = plotutil.Color(color), vg.Points(1.5)
	p.Add(line)
	f.lines++
	return nil
}
