package data

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/transform"
)

// RowError is a row of a gallery that cannot be read.
type RowError struct {
	Row int
	Err error
}

// Error names the row.
func (e *RowError) Error() string {
	return fmt.Sprintf("data: evaluation row %d (mend it or remove it from the split): %v", e.Row, e.Err)
}

// Unwrap returns the reason.
func (e *RowError) Unwrap() error { return e.Err }

// BadRows are rows that cannot be read, with the reason as a text, so that all of several processes have the same.
type BadRows map[int]string

// CheckShare returns a *BadShareError where more than a share of the rows are bad. An evaluation knows all its rows, so
// unlike training it is judged as a whole.
func (b BadRows) CheckShare(rows int, allowed float64) error {
	if float64(len(b)) <= allowed*float64(rows) {
		return nil
	}
	e := &BadShareError{Bad: uint64(len(b)), Read: uint64(rows), Allowed: allowed}
	for _, row := range sortedKeysOf(b)[:min(len(b), maxExamples)] {
		e.Examples = append(e.Examples, BadSample{Counter: uint64(row), Err: fmt.Errorf("%s", b[row])})
	}
	return e
}

// count moves the rows in an account from those that are used to those that are left out.
func (b BadRows) count(a *account.Account, of string) {
	for _, row := range sortedKeysOf(b) {
		a.Move(of, 1, unreadable, b[row])
	}
}

// unreadable is why an evaluation leaves a row out.
const unreadable = "it cannot be read, so the evaluation leaves it out"

func sortedKeysOf(b BadRows) []int {
	list := make([]int, 0, len(b))
	for row := range b {
		list = append(list, row)
	}
	slices.Sort(list)
	return list
}

// Reducible is implemented by galleries of a split of which rows can be left out.
type Reducible interface {
	Galleries
	// Without leaves out rows of images with their texts, and rows of texts; an image whose texts all go goes too. It
	// fails where nothing is left.
	Without(images, texts BadRows) (Galleries, error)
}

var _ Reducible = (*Eval)(nil)

// Without implements Reducible.
func (e *Eval) Without(images, texts BadRows) (Galleries, error) {
	out := *e
	out.images, out.texts, out.owner, out.byImage = nil, nil, nil, nil
	out.bad = account.New()
	out.bad.Add(e.bad)
	for i, at := range e.images {
		if _, bad := images[i]; bad {
			continue
		}
		var mine []int
		for _, j := range e.byImage[i] {
			if _, bad := texts[j]; !bad {
				mine = append(mine, len(out.texts))
				out.texts, out.owner = append(out.texts, e.texts[j]), append(out.owner, len(out.images))
			}
		}
		if mine != nil {
			out.images, out.byImage = append(out.images, at), append(out.byImage, mine)
		}
	}
	images.count(out.bad, ImageUnit)
	texts.count(out.bad, CaptionUnit)
	if len(out.images) == 0 {
		return nil, fmt.Errorf("data: none of the %d images of the evaluation split can be read", len(e.images))
	}
	return &out, nil
}

// Account is that of the data set, with what the evaluation leaves out.
func (e *Eval) Account() *account.Account {
	own := account.Of(e.ds)
	if own == nil && e.bad == nil {
		return nil
	}
	a := account.New()
	a.Add(own)
	a.Add(e.bad)
	return a
}

// WithoutExamples leaves out samples. It fails where none is left.
func WithoutExamples(x Examples, bad BadRows) (Examples, error) {
	w := someExamples{Examples: x, bad: account.New()}
	for i := range x.Len() {
		if _, is := bad[i]; !is {
			w.rows = append(w.rows, i)
		}
	}
	if w.rows == nil {
		return nil, fmt.Errorf("data: none of the %d samples of the evaluation split can be read", x.Len())
	}
	bad.count(w.bad, "row")
	return w, nil
}

// someExamples are the samples whose numbers are rows.
type someExamples struct {
	Examples
	rows []int
	bad  *account.Account
}

func (s someExamples) Len() int                    { return len(s.rows) }
func (s someExamples) Example(i int) Example       { return s.Examples.Example(s.rows[i]) }
func (s someExamples) PictureName(i, k int) string { return s.Examples.PictureName(s.rows[i], k) }
func (s someExamples) Picture(i, k int) (*transform.Image, error) {
	return s.Examples.Picture(s.rows[i], k)
}

// Account implements account.Accounted.
func (s someExamples) Account() *account.Account {
	a := account.New()
	a.Add(account.Of(s.Examples))
	a.Add(s.bad)
	return a
}
