package examples

import (
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/table"
)

// Options say how files are read.
type Options struct {
	ImageRoot   string  // folder of the pictures that files name
	MaxPixels   int     // pixel limit of a picture; 0: images.DefaultMaxPixels
	MaxBadShare float64 // of the rows may be left out as bad; with more, reading is an error
}

// rowUnit is what an account of samples counts.
const rowUnit = "row"

// finish puts what was left out into the account of the examples. An error says that more rows are bad than may be, or
// that nothing is left.
func finish(c *table.Counts, f *data.FileExamples, file string, o Options) error {
	if c.TooBad(o.MaxBadShare) {
		return fmt.Errorf("data: %s: %d of %d rows cannot be used, the first is %s: mend them, or raise "+
			"data.max_bad_share (%g)", file, c.Bad, c.Rows, c.Examples[0], o.MaxBadShare)
	}
	if f.Len() == 0 {
		return fmt.Errorf("data: %s: none of %d rows is a sample with a label (%d without one)", file, c.Rows,
			c.Unlabelled)
	}
	if f.Met == nil {
		f.Met = account.New()
	}
	c.Tell(f.Met, "an empty text", "it cannot be used")
	return nil
}
