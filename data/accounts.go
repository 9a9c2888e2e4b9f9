package data

import "github.com/geoalign/geoalign/data/account"

// Streams and galleries have the account of what they are made of.

// Account implements account.Accounted.
func (t *Train) Account() *account.Account { return account.Of(t.ds) }

// Account implements account.Accounted.
func (s *ExampleStream) Account() *account.Account { return account.Of(s.examples) }

// Account implements account.Accounted.
func (d ExampleDataset) Account() *account.Account { return account.Of(d.Of) }

// Account implements account.Accounted.
func (f firstExamples) Account() *account.Account { return account.Of(f.Examples) }

// Account is that of the pairs and of the sentences together.
func (a Alternating) Account() *account.Account {
	sum := account.New()
	sum.Add(account.Of(a.Stream))
	sum.Add(account.Of(a.sentences))
	return sum
}
