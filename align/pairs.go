package align

import "fmt"

// Side is one of the two sets of features.
type Side int

// The sides. Any two kinds of features may take the places.
const (
	Image Side = iota
	Text
)

// String is "image" or "text".
func (s Side) String() string { return [...]string{"image", "text"}[s] }

// Other returns the other side.
func (s Side) Other() Side { return 1 - s }

// Pairs is two tables in step: row i of one belongs to row i of the other.
type Pairs struct{ Image, Text Rows }

// Of returns the rows of a side.
func (p Pairs) Of(s Side) Rows {
	if s == Image {
		return p.Image
	}
	return p.Text
}

// Len returns N.
func (p Pairs) Len() int { return p.Image.Rows() }

// Select returns the pairs at index.
func (p Pairs) Select(index []int32) Pairs {
	return Pairs{Select(p.Image, index), Select(p.Text, index)}
}

// check tests that there are at least least pairs for method.
func (p Pairs) check(method string, least int) error {
	if p.Image == nil || p.Text == nil {
		return fmt.Errorf("align: %s needs rows of both sides: set Pairs.Image and Pairs.Text", method)
	}
	n, m := p.Image.Rows(), p.Text.Rows()
	switch {
	case n != m:
		return fmt.Errorf("align: %d image rows and %d text rows are not in step: row i of both must be one pair", n, m)
	case n < least:
		return fmt.Errorf("align: %s needs at least %d pairs (got %d): add pairs", method, least, n)
	case p.Image.Width() < 1 || p.Text.Width() < 1:
		return fmt.Errorf("align: rows of width %d and %d: want at least one column", p.Image.Width(), p.Text.Width())
	}
	return nil
}
