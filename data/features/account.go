package features

import "github.com/geoalign/geoalign/data/account"

// Account counts the pairs of all splits. Rows without a pair are those of Unpaired.
func (p *Pairs) Account() *account.Account {
	a := account.New()
	for _, split := range p.splits {
		a.Used("pair", len(split))
	}
	return a
}

// Account implements account.Accounted.
func (s *Stream) Account() *account.Account { return s.p.Account() }

// Account implements account.Accounted.
func (s *Set) Account() *account.Account {
	a := s.p.Account()
	a.Add(s.bad)
	return a
}
