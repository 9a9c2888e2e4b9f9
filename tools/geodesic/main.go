// Command geodesic draws what the geodesic contrast costs as it grows, and what its
// gradients look like.
//
//	go run ./tools/geodesic -grow -out docs/geomm-growth.svg
//	go run ./tools/geodesic -grow -points 4096,16384 -clusters 64,128 -at 4096 -out growth.svg
//	go run ./tools/geodesic -gradients -out docs/geomm-gradients.svg
//
// A table in Markdown goes to the standard output. The ending of -out (.svg, .png or
// .pdf) chooses the format of the picture; without -out there is none.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/compute"
)

func main() {
	compute.ProbeInChild()
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "geodesic:", err)
		os.Exit(1)
	}
}

// run is the command: tables go to w, progress and usage to note.
func run(args []string, w, note io.Writer) error {
	flags := flag.NewFlagSet("geodesic", flag.ContinueOnError)
	flags.SetOutput(note)
	grow := flags.Bool("grow", false, "measure time and memory as the pool and the graph grow")
	gradients := flags.Bool("gradients", false, "look at the gradient of every mode on aligned features")
	out := flags.String("out", "", "draw a picture to `FILE`")
	threads := flags.Int("threads", 0, "threads; 0: all processors")
	channels := flags.Int("channels", 256, "channels C of the features")
	g := growth{note: note}
	flags.IntVar(&g.batch, "batch", 32, "with -grow: rows B of a step")
	flags.IntVar(&g.repeats, "repeats", 3, "with -grow: times that everything is measured; the best counts")
	points := flags.String("points", "4096,16384,65536,262144,1048576", "with -grow: sizes N of the pool, at K = 256 (or the largest K that fits)")
	clusters := flags.String("clusters", "64,128,256,512,1024", "with -grow: bottom centres K, at N = -at")
	flags.IntVar(&g.at, "at", 65536, "with -grow: N of the pool at which K grows")
	d := directions{note: note}
	flags.IntVar(&d.rows, "rows", 1024, "with -gradients: rows of the whole set, in batches of -of")
	flags.IntVar(&d.batch, "of", 64, "with -gradients: rows of a batch")
	flags.IntVar(&d.pool, "pool", 8192, "with -gradients: entries of the pool")
	flags.IntVar(&d.clusters, "k", 64, "with -gradients: bottom centres")
	flags.Float64Var(&d.aligned, "aligned", 0.7, "with -gradients: mean cosine between a row and its positive")
	flags.Float64Var(&d.temperature, "temperature", 0.07, "with -gradients: temperature of the contrast")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *grow == *gradients || flags.NArg() > 0 {
		flags.Usage()
		return fmt.Errorf("want one of -grow and -gradients, and no argument besides (got %q)", args)
	}
	if ext := filepath.Ext(*out); *out != "" && !slices.Contains([]string{".svg", ".png", ".pdf"}, ext) {
		return fmt.Errorf("-out must end in .svg, .png or .pdf (got %s)", *out)
	}
	e, err := compute.New(compute.Options{Threads: *threads})
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Fprintf(w, "%s, %s/%s, %s\n\n", e.Describe(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if *gradients {
		d.engine, d.channels = e, *channels
		return d.run(w, *out)
	}
	g.engine, g.channels = e, *channels
	if g.points, err = numbers("-points", *points); err != nil {
		return err
	}
	if g.clusters, err = numbers("-clusters", *clusters); err != nil {
		return err
	}
	return g.run(w, *out)
}

// numbers reads a list of numbers above 0; an empty one is no number.
func numbers(name, list string) (x []int, err error) {
	if list == "" {
		return nil, nil
	}
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: %q is no number above 0: give a list such as 4096,16384", name, s)
		}
		x = append(x, n)
	}
	return x, nil
}
