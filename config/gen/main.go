// Command gen writes the reference of the configuration, docs/config.md, from
// the comments of the structs in package config and from the defaults.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", ".", "folder of the files with the structs")
	out := flag.String("out", "../docs/config.md", "file to write")
	flag.Parse()
	text, err := render(*source)
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
