// Command curve draws the loss curves of a run from its metrics.jsonl.
//
//	go run ./tools/curve -out docs/flickr8k-loss.svg runs/flickr8k/metrics.jsonl
//
// The ending of -out (.svg, .png or .pdf) chooses the format.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/geoalign/geoalign/train/runlog"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

func main() {
	out := flag.String("out", "loss.svg", "file to write")
	title := flag.String("title", "", "title of the picture")
	keys := flag.String("keys", "loss,loss/itc,loss/itc_in_batch,loss/itm,loss/mlm", "numbers to draw, separated by commas")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: curve [flags] METRICS.JSONL\n\ndraws numbers of a run over its steps")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := draw(flag.Arg(0), *out, *title, strings.Split(*keys, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "curve:", err)
		os.Exit(1)
	}
}

// draw reads the metrics at path and writes the picture out.
func draw(path, out, title string, keys []string) error {
	rows, err := runlog.ReadMetrics(path)
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "step"
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	drawn := 0
	for i, key := range keys {
		var points plotter.XYs
		for _, r := range rows {
			if v, ok := r.Values[key]; ok {
				points = append(points, plotter.XY{X: float64(r.Step), Y: v})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(strings.TrimPrefix(key, "loss/"), line)
		drawn++
	}
	if drawn == 0 {
		return fmt.Errorf("%s holds none of %s", path, strings.Join(keys, ", "))
	}
	return p.Save(18*vg.Centimeter, 10*vg.Centimeter, out)
}
