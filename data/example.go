package data

import "github.com/geoalign/geoalign/data/transform"

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

// Examples are the samples of a downstream task in an order that never changes. Methods may be called from several goroutines.
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
