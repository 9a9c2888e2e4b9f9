package sentencepairs

import "github.com/geoalign/geoalign/data/account"

// Account is what became of the rows.
func (c Counts) Account() *account.Account {
	const row = "row"
	a := account.New()
	a.Used(row, c.Rows-c.Unlabelled-c.Empty-c.Bad)
	a.LeftOut(row, c.Unlabelled, "without a label")
	a.LeftOut(row, c.Empty, "an empty sentence")
	a.LeftOut(row, c.Bad, "it cannot be read", c.Examples...)
	a.LeftOut("file", len(c.Ignored), "scores without a file of sentences", c.Ignored...)
	return a
}

// Account implements account.Accounted.
func (s *Set) Account() *account.Account { return s.Counts.Account() }

// Account implements account.Accounted.
func (s *Stream) Account() *account.Account { return s.set.Account() }
