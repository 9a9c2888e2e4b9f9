package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/search"
)

// indexFlags say what index of a gallery search and serve use.
type indexFlags struct {
	from   int
	codes  string
	recall float64
}

func (f *indexFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.from, "index-from", gallery.IndexRows, "`rows` from which an index is used")
	c.Flags().StringVar(&f.codes, "index-codes", "",
		"bytes or bits: what an index keeps of each number (default: as the index that is there, else bytes)")
	c.Flags().Float64Var(&f.recall, "recall", 0, "`share` of the nearest rows that an index is to find (default 0.95)")
}

// check refuses values that no index has.
func (f *indexFlags) check(c *cobra.Command) error {
	codes := search.Codes(f.codes)
	switch {
	case f.from < 1:
		return usageError{fmt.Errorf("--index-from must be at least 1 (got %d)", f.from)}
	case c.Flags().Changed("index-codes") && codes != search.Bytes && codes != search.Bits:
		return usageError{fmt.Errorf("--index-codes must be bytes or bits (got %q)", f.codes)}
	case c.Flags().Changed("recall") && !(f.recall > 0 && f.recall <= 1):
		return usageError{fmt.Errorf("--recall must be above 0 and at most 1 (got %v)", f.recall)}
	}
	return nil
}

// options are those of the gallery, which shows its progress and says what else happens.
func (f *indexFlags) options(bar *phaseBar, note io.Writer) gallery.IndexOptions {
	return gallery.IndexOptions{From: f.from, Recall: f.recall, Codes: search.Codes(f.codes),
		Progress: func(stage string, done, of int) { bar.show("index: "+stage, done, of) },
		Say:      func(format string, args ...any) { fmt.Fprintf(note, "note: "+format+"\n", args...) }}
}

// noteUnused says that codes change nothing where the rows are too few for an index.
func (f *indexFlags) noteUnused(note io.Writer, rows int) {
	if f.codes != "" && rows < f.from {
		fmt.Fprintf(note, "note: --index-codes changes nothing: an index is used from %s on, and there are %s; lower --index-from\n",
			words.Count(f.from, "row"), words.Thousands(rows))
	}
}
