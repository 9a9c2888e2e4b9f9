// Command gen writes the reference of the configuration, docs/config.md, from
// the comments of the sections and from their defaults.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", "..", "folder of the module")
	out := flag.String("out", "../docs/config.md", "file to write")
	flag.Parse()
	text, err := render(*root)
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
