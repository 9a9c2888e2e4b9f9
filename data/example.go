package data

import (
	"hash/fnv"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/transform"
)

// Example is a sample of a downstream task: a text about one picture or two, and what is asked about them.
type Example struct {
	// ID is the example's in its source, such as a question_id, as files of results name it.
	ID string
	// Text is the question, hypothesis, statement or expression, as written in the source.
	Text string
	// Kind says what is asked, for tables, such as the answer_type of VQA v2; empty: unknown.
	Kind string
	// Label is the class, UnknownLabel for none.
	Label int32
	// Answers are the right ones, the heaviest first, no two alike; nil: unknown.
	Answers []Answer
	// Target is where what Text names lies in the picture; nil: unknown.
	Target *Rect
	// Proposals are the places that it is looked for in; nil: none are known.
	Proposals []Rect
}

// Answer is an answer with how much it counts: of VQA v2 the share of the annotators who gave it.
type Answer struct {
	Text   string
	Weight float32
}

// Rect is a part of a picture in pixels of its source: the left upper corner, width and height.
type Rect struct{ X, Y, W, H float64 }

// Examples are the samples of a downstream task in an order that never changes. Methods may be called from several
// goroutines.
type Examples interface {
	// Len is the number of samples; of an endless training split those that count as one epoch.
	Len() int
	// Example returns sample i without its pictures.
	Example(i int) Example
	// Pictures is the number of pictures of a sample, 1 or 2.
	Pictures() int
	// Picture decodes picture k of sample i. The caller must not change it.
	Picture(i, k int) (*transform.Image, error)
	// PictureName says which picture that is: samples about one picture have one name for it.
	PictureName(i, k int) string
	// Labels returns the names of the classes in the order of their numbers; nil: samples have none.
	Labels() []string
}

// Endless is implemented by Examples of which any i >= 0 is a sample, each another one.
type Endless interface{ Endless() bool }

// FirstExamples is the first n samples, all for 0.
func FirstExamples(x Examples, n int) Examples {
	if n == 0 || n >= x.Len() {
		return x
	}
	return firstExamples{x, n}
}

type firstExamples struct {
	Examples
	n int
}

func (f firstExamples) Len() int { return f.n }

// clipSlack is how many pixels a box may reach out of its picture as it is: annotations are rounded.
const clipSlack = 1

// Clip returns the part of r in a picture of w x h pixels, and whether that is another one by more than a pixel. Of a
// box outside of the picture nothing is left, in width or in height.
func (r Rect) Clip(w, h float64) (inside Rect, cut bool) {
	if r.X >= -clipSlack && r.Y >= -clipSlack && r.X+r.W <= w+clipSlack && r.Y+r.H <= h+clipSlack {
		return r, false
	}
	x0, y0, x1, y1 := max(r.X, 0), max(r.Y, 0), min(r.X+r.W, w), min(r.Y+r.H, h)
	return Rect{X: x0, Y: y0, W: max(x1-x0, 0), H: max(y1-y0, 0)}, true
}

// TextPair is two texts with the class of their relation.
type TextPair struct{ A, B, Label string }

// ExampleDataset is examples as images with captions: the first picture of each with its text. Examples about one
// picture have one id.
type ExampleDataset struct{ Of Examples }

var (
	_ Dataset  = ExampleDataset{}
	_ Labelled = ExampleDataset{}
)

// Len implements Dataset.
func (d ExampleDataset) Len() int { return d.Of.Len() }

// Captions implements Dataset.
func (d ExampleDataset) Captions(i int) []string {
	if text := d.Of.Example(i).Text; !blank(CleanNone, text) {
		return []string{text}
	}
	return nil
}

// ImageID implements Dataset.
func (d ExampleDataset) ImageID(i int) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.Of.PictureName(i, 0)))
	return int64(h.Sum64() >> 1)
}

// Name implements Dataset.
func (d ExampleDataset) Name(i int) string { return d.Of.PictureName(i, 0) }

// Image implements Dataset.
func (d ExampleDataset) Image(i int) (*transform.Image, error) { return d.Of.Picture(i, 0) }

// Labels implements Labelled.
func (d ExampleDataset) Labels() (names []string, ok bool) {
	names = d.Of.Labels()
	return names, names != nil
}

// Label implements Labelled.
func (d ExampleDataset) Label(i int) int32 { return d.Of.Example(i).Label }

// path implements pathed for examples about files.
func (d ExampleDataset) path(i int) string { return d.Of.PictureName(i, 0) }

// Account implements account.Accounted.
func (d ExampleDataset) Account() *account.Account { return account.Of(d.Of) }

// Account implements account.Accounted.
func (f firstExamples) Account() *account.Account { return account.Of(f.Examples) }
