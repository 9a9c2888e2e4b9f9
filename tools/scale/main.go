// Command scale says how long a training step takes on many hosts, by a model that is fitted to
// measurements on few, and draws it.
//
//	go run ./tools/scale -in docs/scale.json -out docs/scale.svg
//
// docs/scale.json holds what was measured and says with which commands; docs/scale.md has the
// formulas and what they leave out.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func main() {
	in := flag.String("in", "docs/scale.json", "measurements")
	out := flag.String("out", "", "picture to write, .svg, .png or .pdf; none: a table alone")
	most := flag.Int("hosts", 64, "largest number of hosts")
	flag.Parse()
	if err := scale(*in, *out, *most); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func scale(in, out string, most int) error {
	text, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var m Measured
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if most < 1 {
		return fmt.Errorf("-hosts must be > 0 (got %d)", most)
	}
	fits, err := m.fit()
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	report(os.Stdout, m, fits, most)
	if out == "" {
		return nil
	}
	return draw(out, m, fits, most)
}
