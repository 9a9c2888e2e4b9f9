package scenes

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/geoalign/geoalign/internal/rng"
)

// QA is a question about a scene and its only right answer.
type QA struct{ Question, Answer string }

// Statement is a sentence about a scene that is true or false.
type Statement struct {
	Text string
	True bool
}

// Phrase is a part of the canonical caption that names one object.
type Phrase struct {
	Text       string // "small red circle"
	Start, End int    // byte range of Text in Caption(nil)
	Object     int    // index into Scene.Objects
	Box        Box    // where it is
}

// numbers are the answers of counting questions.
var numbers = [MaxObjects + 1]string{"zero", "one", "two", "three", "four"}

var opposite = [numRelations]RelationKind{LeftOf: RightOf, RightOf: LeftOf, Above: Below, Below: Above}

// facts returns the generator for choices among true and false facts. It
// depends on the scene alone.
func (s Scene) facts() *rand.Rand { return rng.New(s.Key(), "scenes/facts", 0) }

// yesNo words a truth value as an answer.
func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// count returns the number of objects for which is holds.
func (s Scene) count(is func(Object) bool) int {
	n := 0
	for _, o := range s.Objects {
		if is(o) {
			n++
		}
	}
	return n
}

// has reports whether the scene has an object of that colour and shape.
func (s Scene) has(c Colour, f Shape) bool {
	return s.count(func(o Object) bool { return o.Colour == c && o.Shape == f }) > 0
}

// absentName draws the name of an object that is not there: near is changed in
// its colour or its shape, so that half of the name is true.
func (s Scene) absentName(r *rand.Rand, near Object) string {
	for {
		o := near
		if r.IntN(2) == 0 {
			o.Colour = Colour(r.IntN(numColours))
		} else {
			o.Shape = Shape(r.IntN(numShapes))
		}
		if !s.has(o.Colour, o.Shape) {
			return o.Name()
		}
	}
}

// Questions returns questions with answers: how many objects there are, of each
// colour present and of one colour drawn at random; colour, shape, size and
// place of objects that the question singles out; whether an object exists; and
// relations. The list depends on the facts of the scene alone. Answers are
// "zero" to "four", "yes", "no", a colour, a shape, a size or a place.
func (s Scene) Questions() []QA {
	r := s.facts()
	qa := []QA{{"how many objects are there?", numbers[len(s.Objects)]}}
	askCount := func(c Colour) {
		n := s.count(func(o Object) bool { return o.Colour == c })
		qa = append(qa, QA{fmt.Sprintf("how many %s objects are there?", c), numbers[n]})
	}
	asked := map[Colour]bool{}
	for _, o := range s.Objects {
		if !asked[o.Colour] {
			asked[o.Colour] = true
			askCount(o.Colour)
		}
	}
	if c := Colour(r.IntN(numColours)); !asked[c] {
		askCount(c)
	}
	for _, o := range s.Objects {
		if s.count(func(p Object) bool { return p.Shape == o.Shape }) == 1 {
			qa = append(qa, QA{fmt.Sprintf("what colour is the %s?", o.Shape), o.Colour.String()})
		}
		if s.count(func(p Object) bool { return p.Colour == o.Colour }) == 1 {
			qa = append(qa, QA{fmt.Sprintf("what shape is the %s object?", o.Colour), o.Shape.String()})
		}
		qa = append(qa,
			QA{fmt.Sprintf("is the %s small or big?", o.Name()), o.Size.String()},
			QA{fmt.Sprintf("where is the %s?", o.Name()), o.Place.String()},
			QA{fmt.Sprintf("is there a %s?", o.Name()), "yes"},
			QA{fmt.Sprintf("is there a %s?", s.absentName(r, o)), "no"})
	}
	for _, rel := range s.someRelations(r) {
		qa = append(qa, QA{"is the " + s.relationText(rel, "") + "?", yesNo(s.Holds(rel.A, rel.Kind, rel.B))})
	}
	return qa
}

// Statements returns sentences of which about half are true: how many objects
// there are, which exist, where they are and how they lie to each other. The
// list depends on the facts of the scene alone.
func (s Scene) Statements() []Statement {
	r := s.facts()
	n := len(s.Objects)
	wrong := 1 + (n+r.IntN(MaxObjects-1))%MaxObjects // any count but n
	out := []Statement{{countText(n), true}, {countText(wrong), false}}
	for _, o := range s.Objects {
		place := Place((int(o.Place) + 1 + r.IntN(numPlaces-1)) % numPlaces)
		other := Size((int(o.Size) + 1) % numSizes)
		out = append(out,
			Statement{"there is a " + o.Name(), true},
			Statement{"there is a " + s.absentName(r, o), false},
			Statement{"the " + o.Name() + " is " + o.Place.Phrase(), true},
			Statement{"the " + o.Name() + " is " + place.Phrase(), false},
			Statement{"the " + o.Name() + " is " + o.Size.String(), true},
			Statement{"the " + o.Name() + " is " + other.String(), false})
	}
	for _, rel := range s.someRelations(r) {
		out = append(out, Statement{"the " + s.relationText(rel, "is "), s.Holds(rel.A, rel.Kind, rel.B)})
	}
	return out
}

// someRelations returns one true and one false relation for each pair of
// objects, each pair in an order drawn with r.
func (s Scene) someRelations(r *rand.Rand) []Relation {
	var out []Relation
	for a := range s.Objects {
		for b := a + 1; b < len(s.Objects); b++ {
			var holds []Relation
			for k := range RelationKind(numRelations) {
				if s.Holds(a, k, b) {
					holds = append(holds, Relation{a, b, k})
				}
			}
			rel := holds[r.IntN(len(holds))] // two objects never share a cell: at least one holds
			if r.IntN(2) == 1 {
				rel = Relation{rel.B, rel.A, opposite[rel.Kind]}
			}
			out = append(out, rel, Relation{rel.A, rel.B, opposite[rel.Kind]})
		}
	}
	return out
}

// relationText puts a relation into words, with verb between its first object
// and the direction.
func (s Scene) relationText(r Relation, verb string) string {
	return s.Objects[r.A].Name() + " " + verb + r.Kind.String() + " the " + s.Objects[r.B].Name()
}

func countText(n int) string {
	if n == 1 {
		return "there is one object"
	}
	return "there are " + numbers[n] + " objects"
}

// Phrases returns the part of the canonical caption that names each object,
// with its bounding box, in the order of Objects.
func (s Scene) Phrases() []Phrase {
	caption := s.Caption(nil)
	out := make([]Phrase, len(s.Objects))
	for i, o := range s.Objects {
		at := strings.Index(caption, o.FullName()) // unique: colour and shape are
		out[i] = Phrase{Text: o.FullName(), Start: at, End: at + len(o.FullName()), Object: i, Box: o.Box()}
	}
	return out
}
