// Command curve draws losses of runs over their steps from metrics.jsonl:
//
//	go run ./curve -out ../docs/flickr8k-loss.svg ../runs/flickr8k/metrics.jsonl
//	go run ./curve -keys loss -smooth 5 -out loss.png fp32=../runs/a/metrics.jsonl bf16=../runs/b/metrics.jsonl
//
// Runs with the same label have the same colour. The ending of -out (.svg, .png or .pdf) chooses the format.
package main

import (
	"flag"
	"log"
	"strings"

	"github.com/geoalign/geoalign/train/runlog"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("curve: ")
	out := flag.String("out", "loss.svg", "file to write")
	title := flag.String("title", "", "title of the picture")
	keys := flag.String("keys", "loss,loss/itc,loss/itc_in_batch,loss/itm,loss/mlm", "numbers to draw")
	smooth := flag.Int("smooth", 1, "draw means over so many logged values")
	flag.Parse()
	if flag.NArg() < 1 || *smooth < 1 {
		log.Fatal("want [LABEL=]METRICS.JSONL... and -smooth above 0")
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Min, p.Legend.Top = *title, "step", 0, true
	p.Add(plotter.NewGrid())
	colors := map[string]int{}
	for _, run := range flag.Args() {
		label, path, labelled := strings.Cut(run, "=")
		if !labelled {
			label, path = "", run
		}
		rows, err := runlog.ReadMetrics(path)
		if err != nil {
			log.Fatal(err)
		}
		for key := range strings.SplitSeq(*keys, ",") {
			points := means(rows, key, *smooth)
			if len(points) == 0 {
				continue
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				log.Fatalf("%s: %s: %v", path, key, err)
			}
			name := label
			if !labelled || strings.Contains(*keys, ",") {
				name = strings.TrimSpace(label + " " + strings.TrimPrefix(key, "loss/"))
			}
			if _, known := colors[name]; !known {
				colors[name] = len(colors)
				p.Legend.Add(name, line)
			}
			line.Color, line.Width = plotutil.Color(colors[name]), vg.Points(1.5)
			p.Add(line)
		}
	}
	if len(colors) == 0 {
		log.Fatalf("no file holds any of %s", *keys)
	}
	if err := p.Save(18*vg.Centimeter, 10*vg.Centimeter, *out); err != nil {
		log.Fatal(err)
	}
}

// means returns the means of n logged values of a key each, at the step of the last one.
func means(rows []runlog.Row, key string, n int) (points plotter.XYs) {
	sum, count := 0.0, 0
	for _, r := range rows {
		v, ok := r.Values[key]
		if !ok {
			continue
		}
		if sum, count = sum+v, count+1; count == n {
			points = append(points, plotter.XY{X: float64(r.Step), Y: sum / float64(n)})
			sum, count = 0, 0
		}
	}
	return points
}
