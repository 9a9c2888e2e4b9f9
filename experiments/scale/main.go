// Command scale says how long a training step takes on many hosts, by a model that is fitted to measurements on few:
//
//	go run ./scale -in ../docs/scale.json -out ../docs/scale.svg
//
// docs/scale.json holds what was measured and the commands; docs/scale.md has the formulas and what they leave out.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("scale: ")
	in := flag.String("in", "../docs/scale.json", "measurements")
	out := flag.String("out", "", "picture to write, .svg, .png or .pdf; none: only the tables")
	flag.Parse()
	text, err := os.ReadFile(*in)
	if err != nil {
		log.Fatal(err)
	}
	var m Measured
	if err := json.Unmarshal(text, &m); err != nil {
		log.Fatalf("%s: %v", *in, err)
	}
	fits, err := m.fit()
	if err != nil {
		log.Fatalf("%s: %v", *in, err)
	}
	report(os.Stdout, m, fits)
	if *out != "" {
		if err := draw(*out, m, fits); err != nil {
			log.Fatal(err)
		}
	}
}
