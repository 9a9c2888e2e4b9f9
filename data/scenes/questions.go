package scenes

import (
	"math/rand/v2"
	"slices"
)

// Question is a question about a scene with its one right answer.
type Question struct {
	Text, Answer string
	Kind         string // one of QuestionKinds
}

// The kinds of questions. Within a kind answers are as even as the scenes allow, and nothing in the words of a question
// tells its answer.
const (
	AskColour   = "colour"   // what colour is the circle?
	AskShape    = "shape"    // what shape is the red object?
	AskSize     = "size"     // how big is the red circle?
	AskPlace    = "place"    // where is the red circle?
	AskCount    = "count"    // how many red objects are there?
	AskExists   = "exists"   // is there a red circle?
	AskRelation = "relation" // is the red circle above the blue star?
)

// QuestionKinds are all kinds.
func QuestionKinds() []string {
	return []string{AskColour, AskShape, AskSize, AskPlace, AskCount, AskExists, AskRelation}
}

// Answers returns every answer to a question about the world's scenes, each once.
func (w *World) Answers() []string {
	out := []string{"yes", "no"}
	for c := range w.cfg.Colours {
		out = append(out, Colour(c).String())
	}
	for s := range w.cfg.Shapes {
		out = append(out, Shape(s).String())
	}
	for s := range w.cfg.Sizes {
		out = append(out, Size(s).String())
	}
	out = append(out, placeNames[:]...)
	for n := range w.cfg.MaxObjects + 1 {
		out = append(out, numberAnswer(n))
	}
	return out
}

// Question draws a question about a scene of the world: first its kind, evenly from those that can be asked
// (of a relation between two objects, of sizes where there are two), then its answer where that is yes or no.
func (w *World) Question(s Scene, r *rand.Rand) Question {
	var kinds []string
	for _, k := range QuestionKinds() {
		if (k != AskColour || w.cfg.Colours > 1) && (k != AskShape || w.cfg.Shapes > 1) &&
			(k != AskSize || w.cfg.Sizes > 1) &&
			(k != AskRelation || len(s.Objects) > 1) {
			kinds = append(kinds, k)
		}
	}
	q := Question{Kind: kinds[r.IntN(len(kinds))]}
	o := s.Objects[r.IntN(len(s.Objects))]
	switch q.Kind {
	case AskColour:
		q.Text, q.Answer = "what colour is the "+s.naming(o, r, o.Shape.String())+"?", o.Colour.String()
	case AskShape:
		q.Text, q.Answer = "what shape is the "+s.naming(o, r, o.Colour.String()+" object")+"?", o.Shape.String()
	case AskSize:
		q.Text, q.Answer = "how big is the "+o.Name()+"?", o.Size.String()
	case AskPlace:
		q.Text, q.Answer = "where is the "+o.Name()+"?", o.Place.String()
	case AskCount:
		q.Text, q.Answer = w.askCount(s, r)
	case AskExists:
		q.Text, q.Answer = w.askExists(s, o, r)
	case AskRelation:
		q.Text, q.Answer = s.askRelation(o, r)
	}
	return q
}

// naming is one way of several to name an object: as name where no other object of the scene is called so, with its
// size where that makes it one, or by its place.
func (s Scene) naming(o Object, r *rand.Rand, name string) string {
	called := func(x Object) bool { return x.Shape.String() == name || x.Colour.String()+" object" == name }
	alike, sized := 0, 0
	for _, x := range s.Objects {
		if called(x) {
			alike++
			if x.Size == o.Size {
				sized++
			}
		}
	}
	ways := []string{"object " + o.Place.Phrase()}
	switch {
	case alike == 1:
		ways = append(ways, name)
	case sized == 1:
		ways = append(ways, o.Size.String()+" "+name)
	}
	return ways[r.IntN(len(ways))]
}

// askCount asks for the number of all objects, or of those of a colour or a shape; each number that some of these has
// is as likely.
func (w *World) askCount(s Scene, r *rand.Rand) (text, answer string) {
	if r.IntN(2) == 0 {
		return "how many objects are there?", numberAnswer(len(s.Objects))
	}
	colours, shapes := make([]int, w.cfg.Colours), make([]int, w.cfg.Shapes)
	for _, o := range s.Objects {
		colours[o.Colour]++
		shapes[o.Shape]++
	}
	count, names := colours, func(i int) string { return Colour(i).String() + " objects" }
	if r.IntN(2) == 0 {
		count, names = shapes, func(i int) string { return plural(Shape(i)) }
	}
	present := slices.Compact(slices.Sorted(slices.Values(count)))
	n := present[r.IntN(len(present))]
	var with []int
	for i, c := range count {
		if c == n {
			with = append(with, i)
		}
	}
	return "how many " + names(with[r.IntN(len(with))]) + " are there?", numberAnswer(n)
}

// numberAnswer is the word for n objects: none, or a number as captions have it, so that a vocabulary of captions has
// its letters.
func numberAnswer(n int) string {
	if n == 0 {
		return "none"
	}
	return numbers[n]
}

// plural is the word for several objects of a shape.
func plural(s Shape) string {
	if s == Cross {
		return "crosses"
	}
	return s.String() + "s"
}

// askExists asks for an object, or for one that differs from it in colour or shape and is not there.
func (w *World) askExists(s Scene, o Object, r *rand.Rand) (text, answer string) {
	answer = "yes"
	if r.IntN(2) == 0 && len(s.Objects) < w.cfg.Shapes*w.cfg.Colours {
		answer = "no"
		o = w.absent(s, o, r)
	}
	return "is there a " + o.Name() + "?", answer
}

// absent changes colour or shape of an object until the scene has none like it. Some object must be missing.
func (w *World) absent(s Scene, o Object, r *rand.Rand) Object {
	for {
		x := o
		if r.IntN(2) == 0 {
			x.Colour = Colour(r.IntN(w.cfg.Colours))
		} else {
			x.Shape = Shape(r.IntN(w.cfg.Shapes))
		}
		if !slices.ContainsFunc(s.Objects, func(y Object) bool { return y.Name() == x.Name() }) {
			return x
		}
		if r.IntN(4) == 0 { // all that differ in one of the two may be there
			o = x
		}
	}
}

// askRelation asks how an object lies to another, along a direction in which their cells differ.
func (s Scene) askRelation(o Object, r *rand.Rand) (text, answer string) {
	var others []Object
	for _, x := range s.Objects {
		if x.Place != o.Place {
			others = append(others, x)
		}
	}
	x := others[r.IntN(len(others))]
	ways := [][2]string{}
	if d := o.Place.Row() - x.Place.Row(); d != 0 {
		ways = append(ways, ordered("above", "below", d < 0))
	}
	if d := o.Place.Column() - x.Place.Column(); d != 0 {
		ways = append(ways, ordered("to the left of", "to the right of", d < 0))
	}
	way := ways[r.IntN(len(ways))]
	answer, relation := "yes", way[0]
	if r.IntN(2) == 0 {
		answer, relation = "no", way[1]
	}
	return "is the " + o.Name() + " " + relation + " the " + x.Name() + "?", answer
}

// ordered returns two words, a first if that is so.
func ordered(a, b string, first bool) [2]string {
	if first {
		return [2]string{a, b}
	}
	return [2]string{b, a}
}
