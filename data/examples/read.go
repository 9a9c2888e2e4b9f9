package examples

import (
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
)

// Options say how files are read.
type Options struct {
	ImageRoot   string  // folder of the pictures that files name
	MaxPixels   int     // pixel limit of a picture; 0: images.DefaultMaxPixels
	MaxBadShare float64 // of the rows may be left out as bad; with more, reading is an error
}

// Counts say what was read and what was left out.
type Counts struct {
	Rows       int      // of the files
	Other      int      // of another split
	Unlabelled int      // left out: without a label
	Bad        int      // left out: other than its file says
	Examples   []string // reasons of the first bad ones
}

// mostExamples is the number of bad rows that Counts keep the reasons of.
const mostExamples = 5

// bad counts a row that cannot be used.
func (c *Counts) bad(reason error) {
	if c.Bad++; len(c.Examples) < mostExamples {
		c.Examples = append(c.Examples, reason.Error())
	}
}

// rowUnit is what an account of samples counts.
const rowUnit = "row"

// finish puts what was left out into the account of the examples. An error says that more rows are bad than may be, or that nothing is left.
func (c *Counts) finish(f *data.FileExamples, file string, o Options) error {
	if float64(c.Bad) > o.MaxBadShare*float64(c.Rows) {
		return fmt.Errorf("data: %s: %d of %d rows cannot be used, the first is %s: mend them, or raise data.max_bad_share (%g)", file, c.Bad, c.Rows, c.Examples[0], o.MaxBadShare)
	}
	if f.Len() == 0 {
		return fmt.Errorf("data: %s: none of %d rows is a sample with a label (%d without one)", file, c.Rows, c.Unlabelled)
	}
	if f.Met == nil {
		f.Met = account.New()
	}
	f.Met.Used(rowUnit, c.Rows-c.Other-c.Unlabelled-c.Bad)
	f.Met.LeftOut(rowUnit, c.Unlabelled, "without a label")
	f.Met.LeftOut(rowUnit, c.Bad, "it cannot be used", c.Examples...)
	return nil
}
