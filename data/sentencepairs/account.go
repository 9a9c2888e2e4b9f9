package sentencepairs

import "github.com/geoalign/geoalign/data/account"

// Account is what became of the rows.
func (c Counts) Account() *account.Account {
	a := account.New()
	c.Tell(a, "an empty sentence", "it cannot be read")
	a.LeftOut("file", len(c.Ignored), "scores without a file of sentences", c.Ignored...)
	return a
}

// Account implements account.Accounted.
func (s *Set) Account() *account.Account { return s.Counts.Account() }

// Account implements account.Accounted.
func (s *Stream) Account() *account.Account { return s.set.Account() }
