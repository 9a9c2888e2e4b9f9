package table

import "github.com/geoalign/geoalign/data/account"

// Counts is what became of the rows of files of which those that cannot be used are left out, up to a share.
type Counts struct {
	Rows       int      `json:"rows"`       // of the files
	Other      int      `json:"-"`          // of another split
	Unlabelled int      `json:"unlabelled"` // left out: without a label
	Empty      int      `json:"empty"`      // left out: a text is empty
	Bad        int      `json:"bad"`        // left out: other than the file says
	Examples   []string `json:"examples,omitempty"`
}

// mostExamples is the number of bad rows whose reasons are kept.
const mostExamples = 5

// Refuse counts a row that cannot be used.
func (c *Counts) Refuse(reason error) {
	if c.Bad++; len(c.Examples) < mostExamples {
		c.Examples = append(c.Examples, reason.Error())
	}
}

// Take is a function for Read and Objects that counts rows, refuses those that are not whole, and hands on the others.
func (c *Counts) Take(take func(r Row) error) func(r Row) error {
	return func(r Row) error {
		if c.Rows++; r.Err != nil {
			c.Refuse(r.Wrong(r.Err))
			return nil
		}
		return take(r)
	}
}

// TooBad says that more rows are bad than a share of all.
func (c *Counts) TooBad(share float64) bool { return float64(c.Bad) > share*float64(c.Rows) }

// Tell adds the rows to an account; empty and bad say why rows of these kinds are left out.
func (c *Counts) Tell(a *account.Account, empty, bad string) {
	const row = "row"
	a.Used(row, c.Rows-c.Other-c.Unlabelled-c.Empty-c.Bad)
	a.LeftOut(row, c.Unlabelled, "without a label")
	a.LeftOut(row, c.Empty, empty)
	a.LeftOut(row, c.Bad, bad, c.Examples...)
}
