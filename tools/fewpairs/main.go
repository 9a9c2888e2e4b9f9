// Command fewpairs compares the methods of package align on stored features as the number of
// pairs grows: hit@1, 5 and 10 of held-out pairs in both directions, means over draws of the pairs, the
// same draws for every method.
//
//	go run ./tools/fewpairs -image clip_image_embeddings.npy -text lsa_text_embeddings.npy -last 300
//	go run ./tools/fewpairs -image image.npy -text text.npy -pairs pairs.tsv -budgets 100,1000,0
//
// Held out are the last rows (-last), or the rows of the split test of a table with the
// columns split, image_row and text_row (-pairs), whose split train is drawn from. A budget of 0 is
// all pairs. A table in Markdown goes to the standard output.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/features"
)

func main() {
	compute.ProbeInChild()
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "fewpairs:", err)
		os.Exit(1)
	}
}

// run is the command: the table goes to w, progress and usage to note.
func run(args []string, w, note io.Writer) (err error) {
	flags := flag.NewFlagSet("fewpairs", flag.ContinueOnError)
	flags.SetOutput(note)
	image := flags.String("image", "", "features of images, `FILE.npy`")
	text := flags.String("text", "", "features of texts, `FILE.npy`")
	table := flags.String("pairs", "", "`FILE.tsv` with split, image_row and text_row")
	last := flags.Int("last", 300, "without -pairs: rows at the end that are held out")
	budgets := flags.String("budgets", "50,100,200,350,500,700", "numbers of pairs; 0: all")
	draws := flags.Int("draws", 10, "draws of the pairs of a budget")
	only := flags.String("methods", "", "regular expression of the names of methods")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	names, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-methods: %w", err)
	}
	list := slices.DeleteFunc(slices.Clone(methods), func(m method) bool { return !names.MatchString(m.name) })
	switch {
	case len(list) == 0:
		return fmt.Errorf("-methods: no method has %q in its name", *only)
	case *draws < 1:
		return fmt.Errorf("-draws must be > 0 (got %d)", *draws)
	}
	images, err := features.OpenMatrix(*image, "")
	if err != nil {
		return err
	}
	defer images.Close()
	texts, err := features.OpenMatrix(*text, "")
	if err != nil {
		return err
	}
	defer texts.Close()
	set := &dataset{images: images, texts: texts}
	if *table != "" {
		err = set.readTable(*table)
	} else {
		err = set.holdOut(*last)
	}
	if err != nil {
		return err
	}
	engine, err := compute.New(compute.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	for field := range strings.SplitSeq(*budgets, ",") {
		budget, err := strconv.Atoi(field)
		if err != nil || budget < 0 || budget > len(set.train) {
			return fmt.Errorf("-budgets must be numbers up to %d (got %q)", len(set.train), field)
		}
		if err := compare(engine, set, list, budget, *draws, w, note); err != nil {
			return err
		}
	}
	return nil
}
