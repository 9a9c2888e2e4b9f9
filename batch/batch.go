// Package batch holds what a step reads: rows of named columns. A data stream fills
// rows, a tower or a loss names the columns that it reads, and neither knows the other.
//
//	b := batch.New(32, batch.Column{Name: batch.Tokens, Shape: []int{20}, Type: batch.Int32})
//	copy(b.Row(0).Ints(batch.Tokens), ids)
//
// Shape letters: B rows of a batch, L tokens of a text, S side of an image, D width of a
// feature row.
package batch

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the columns of the built-in towers and data kinds. They are names like any
// other: a tower and a data kind of another module agree on names of their own.
const (
	Images        = "images"       // (3, S, S) float32, normalised pixels
	Views         = "images/2"     // (3, S, S) float32, a second view of each image
	SecondImages  = "images/other" // (3, S, S) float32, the second picture of a row of two
	Crops         = "images/crops" // (V, 3, s, s) float32, further views of each image, smaller ones
	Tokens        = "tokens"       // (L) int32, ids of a text, padded
	Lengths       = "lengths"      // () int32, tokens of a text that are no padding
	Segments      = "segments"     // (L) int32, 0 of the tokens of the first of two texts in one, 1 of the second
	SecondTokens  = "tokens/2"     // (L) int32, ids of the second text of a row, padded
	SecondLengths = "lengths/2"    // () int32, tokens of the second text that are no padding
	ThirdTokens   = "tokens/3"     // (L) int32, ids of the third text of a row, padded
	ThirdLengths  = "lengths/3"    // () int32, tokens of the third text that are no padding
	// (A, L) int32, ids of the answers of a row, each from the token that begins a text to the one that ends it, padded
	Answers       = "answers"
	AnswerLengths = "answers/lengths" // (A) int32, tokens of each answer that are no padding
	AnswerWeights = "answers/weights" // (A) float32, how much each answer counts; 0: there is none
	IDs           = "ids"             // () int32, never negative; rows of one id are positives of each other
	Labels        = "labels"          // () int32, the class of a row, -1 for none
	Paired        = "paired"          // () int32, 1 of a row with an image and a text, 0 of a text alone
	Scores        = "scores"          // () float32, how alike the two texts of a row are
	ImageFeatures = "image features"  // (D) float32 of a frozen encoder
	TextFeatures  = "text features"   // (D) float32 of a frozen encoder

	ImageTower = "image tower" // (m D) float32, class tokens that a frozen image tower gave before
	TextTower  = "text tower"  // (m D) float32, likewise of a text

	Regions       = "regions"         // (R, D) float32, features of the regions of an image, zeros after the last one
	RegionLengths = "regions/lengths" // () int32, regions that are no padding, at least 1
	// (R, 4) float32: left, top, right, bottom as shares of the width and height of the image
	RegionBoxes = "regions/boxes"

	ImageNeighbours = "image neighbours" // (K) int32, rows of the pool of images near the row's own
	TextNeighbours  = "text neighbours"  // (K) int32, likewise of texts
)

// Text names the columns of a text.
type Text struct{ Tokens, Lengths string }

// The texts of a row: its own, one that says the same or is the second of a pair, and one that looks like it and says
// something else.
var (
	OwnText      = Text{Tokens, Lengths}
	PositiveText = Text{SecondTokens, SecondLengths}
	NegativeText = Text{ThirdTokens, ThirdLengths}
)

// Type is the type of a column's values.
type Type uint8

// The types that graphs read.
const (
	Float32 Type = iota
	Int32
)

// String names the type as the formats do.
func (t Type) String() string {
	if t == Int32 {
		return "int32"
	}
	return "float32"
}

// Column says what a batch holds under a name.
type Column struct {
	Name  string
	Shape []int // of one row; empty: one value
	Type  Type
}

// Len returns the number of values of a row.
func (c Column) Len() int {
	n := 1
	for _, d := range c.Shape {
		n *= d
	}
	return n
}

// Equal says whether two columns hold the same.
func (c Column) Equal(o Column) bool {
	return c.Name == o.Name && c.Type == o.Type && slices.Equal(c.Shape, o.Shape)
}

// String is the column for people: tokens (20) int32.
func (c Column) String() string {
	s := strings.ReplaceAll(strings.Trim(fmt.Sprint(c.Shape), "[]"), " ", ", ")
	return fmt.Sprintf("%s (%s) %v", c.Name, s, c.Type)
}

// Batch is B rows of columns, each one block of memory, row after row.
type Batch struct {
	rows    int
	columns []Column
	floats  map[string][]float32
	ints    map[string][]int32
	data    map[string]any // the same, kept so that handing them on allocates nothing
}

// New returns a batch of zeros. Two columns of one name must be equal and are then one.
func New(rows int, columns ...Column) *Batch {
	b := &Batch{rows: rows, floats: map[string][]float32{}, ints: map[string][]int32{}, data: map[string]any{}}
	for _, c := range columns {
		switch old, known := b.Column(c.Name); {
		case known && !old.Equal(c):
			panic(fmt.Sprintf("batch: column %v is asked for as %v too", old, c))
		case known:
			continue
		case c.Type == Int32:
			b.SetInts(c.Name, make([]int32, rows*c.Len()))
		default:
			b.SetFloats(c.Name, make([]float32, rows*c.Len()))
		}
		b.columns = append(b.columns, c)
	}
	return b
}

// Rows returns B.
func (b *Batch) Rows() int { return b.rows }

// Columns returns what the batch holds.
func (b *Batch) Columns() []Column { return b.columns }

// Column returns the column of a name.
func (b *Batch) Column(name string) (Column, bool) { return Find(b.columns, name) }

// Floats returns all rows of a float32 column, nil where there is none.
func (b *Batch) Floats(name string) []float32 { return b.floats[name] }

// Ints returns all rows of an int32 column, nil where there is none.
func (b *Batch) Ints(name string) []int32 { return b.ints[name] }

// SetFloats gives a float32 column other memory of the same length, which the caller keeps.
func (b *Batch) SetFloats(name string, values []float32) {
	b.floats[name], b.data[name] = values, values
}

// SetInts gives an int32 column other memory of the same length, which the caller keeps.
func (b *Batch) SetInts(name string, values []int32) { b.ints[name], b.data[name] = values, values }

// Data returns all rows of a column of either type, []float32 or []int32, nil where there
// is none. It allocates nothing.
func (b *Batch) Data(name string) any { return b.data[name] }

// Narrow gives b the rows of from: of each column that b was made with the first values of a row of from, and the other
// columns of from in its own memory. It allocates nothing but the first time.
func (b *Batch) Narrow(from *Batch) {
	for _, c := range from.columns {
		own, narrow := b.Column(c.Name)
		if !narrow {
			b.floats[c.Name], b.ints[c.Name], b.data[c.Name] = from.floats[c.Name], from.ints[c.Name], from.data[c.Name]
			continue
		}
		firsts(b.floats[c.Name], from.floats[c.Name], own.Len(), c.Len())
		firsts(b.ints[c.Name], from.ints[c.Name], own.Len(), c.Len())
	}
}

// firsts copies the first n values of each row of from, of m values, to a row of to.
func firsts[T any](to, from []T, n, m int) {
	for ; len(to) > 0; to, from = to[n:], from[m:] {
		copy(to[:n], from)
	}
}

// Row returns row i.
func (b *Batch) Row(i int) Row { return Row{b, i} }

// Row is one row of a batch. What a stream fills.
type Row struct {
	b *Batch
	i int
}

// Floats returns the row's values of a float32 column, nil where nobody asked for it.
func (r Row) Floats(name string) []float32 { return part(r.b.floats[name], r.i, r.b.rows) }

// Ints returns the row's values of an int32 column, nil where nobody asked for it.
func (r Row) Ints(name string) []int32 { return part(r.b.ints[name], r.i, r.b.rows) }

// Set stores the value of a column of one int32 per row, if anybody asked for it.
func (r Row) Set(name string, v int32) {
	if x := r.Ints(name); x != nil {
		x[0] = v
	}
}

// Copy stores what from holds in the columns of r.
func (r Row) Copy(from Row) {
	for _, c := range r.b.columns {
		copy(r.Floats(c.Name), from.Floats(c.Name))
		copy(r.Ints(c.Name), from.Ints(c.Name))
	}
}

// Clear stores zeros in all columns of r.
func (r Row) Clear() {
	for _, c := range r.b.columns {
		clear(r.Floats(c.Name))
		clear(r.Ints(c.Name))
	}
}

func part[T any](all []T, i, rows int) []T {
	if all == nil {
		return nil
	}
	n := len(all) / rows
	return all[i*n : (i+1)*n : (i+1)*n]
}

// Find returns the column of a name.
func Find(columns []Column, name string) (Column, bool) {
	i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return columns[i], true
}

// Union returns the columns of all lists, each name once, or an error that names two
// columns of one name that differ.
func Union(lists ...[]Column) ([]Column, error) {
	var all []Column
	for _, list := range lists {
		for _, c := range list {
			old, known := Find(all, c.Name)
			if known && !old.Equal(c) {
				return nil, fmt.Errorf("batch: column %v is wanted as %v too: both must read the same", old, c)
			}
			if !known {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// MissingError says that data does not give a column that a model reads.
type MissingError struct {
	Want Column
	Have []Column
}

// Error names the column and what there is.
func (e *MissingError) Error() string {
	var have []string
	for _, c := range e.Have {
		have = append(have, c.String())
	}
	hint := "choose data that has it, or a model that does not read it"
	if c, ok := Find(e.Have, e.Want.Name); ok {
		hint = fmt.Sprintf("bring shape and type of the model's input to those of the data, %v", c)
	}
	return fmt.Sprintf("batch: the model reads the column %v, which the data does not give (it gives %s): %s",
		e.Want, strings.Join(have, ", "), hint)
}

// Check returns a *MissingError for the first column of want that have lacks.
func Check(want, have []Column) error {
	for _, c := range want {
		if h, ok := Find(have, c.Name); !ok || !h.Equal(c) {
			return &MissingError{Want: c, Have: have}
		}
	}
	return nil
}
