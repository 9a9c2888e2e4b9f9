// Command geodesic prints and draws what the geodesic contrast costs as it grows, and where its gradients point:
//
//	go run ./geodesic -grow -out ../docs/geomm-growth.svg
//	go run ./geodesic -grow -points 4096,16384 -clusters 64,128 -out growth.svg
//	go run ./geodesic -gradients -out ../docs/geomm-gradients.svg
//
// Tables in Markdown go to the standard output. The ending of -out (.svg, .png or .pdf) chooses the format.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"

	"github.com/geoalign/geoalign/compute"
)

func main() {
	compute.ProbeInChild()
	log.SetFlags(0)
	log.SetPrefix("geodesic: ")
	grow := flag.Bool("grow", false, "measure time and memory as the pool and the graph grow")
	gradients := flag.Bool("gradients", false, "look at the gradient of every mode on aligned features")
	out := flag.String("out", "", "picture to write; none: only the tables")
	points := flag.String("points", "4096,16384,65536,262144,1048576", "with -grow: entries N of the pool")
	clusters := flag.String("clusters", "64,128,256,512,1024", "with -grow: bottom centres K, with N = 65536")
	flag.Parse()
	e, err := compute.New(compute.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	fmt.Printf("%s, %s/%s, %s\n\n", e.Describe(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	switch {
	case *gradients:
		err = directions{engine: e, channels: 256, rows: 1024, batch: 64, pool: 8192, clusters: 64, aligned: .7,
			temperature: .07}.run(os.Stdout, *out)
	case *grow:
		err = growth{engine: e, channels: 256, batch: 32, repeats: 3, points: numbers(*points),
			clusters: numbers(*clusters), at: 65536}.run(os.Stdout, *out)
	default:
		log.Fatal("want -grow or -gradients")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// numbers reads a list of numbers between commas.
func numbers(list string) (x []int) {
	if err := json.Unmarshal([]byte("["+list+"]"), &x); err != nil {
		log.Fatalf("%q is not a list of numbers such as 4096,16384", list)
	}
	return x
}
