package scenes

import "math/rand/v2"

// Kinds of referring expressions.
const (
	ByLook     = "look"     // "the small red circle": size, colour and shape, as many as it takes
	ByPlace    = "place"    // "the circle at the top left"
	ByRelation = "relation" // "the circle to the left of the blue square"
)

// ReferringKinds lists them.
var ReferringKinds = []string{ByLook, ByPlace, ByRelation}

// Referring is an expression that is true of exactly one object of its scene.
type Referring struct {
	Text   string
	Kind   string
	Object int // number of the object in the scene
}

// look is what an expression says of an object's look: size, colour and shape, each or not.
type look struct{ size, colour, shape bool }

// looks are the ways to say it, as often as they are drawn. What does not name the shape says "object". Most say much:
// a text that fits many scenes teaches little.
var looks = []look{
	{true, true, true}, {true, true, true}, {true, true, true}, {colour: true, shape: true}, {colour: true, shape: true}, {colour: true, shape: true},
	{size: true, shape: true}, {size: true, colour: true}, {shape: true}, {colour: true},
}

// of is the phrase for an object.
func (l look) of(o Object) string {
	s := "the "
	if l.size {
		s += o.Size.String() + " "
	}
	if l.colour {
		s += o.Colour.String() + " "
	}
	if l.shape {
		return s + o.Shape.String()
	}
	return s + "object"
}

// fits says whether the phrase for a is true of b.
func (l look) fits(a, b Object) bool {
	return (!l.size || a.Size == b.Size) && (!l.colour || a.Colour == b.Colour) && (!l.shape || a.Shape == b.Shape)
}

// Refer draws an object and an expression for it, by its look half of the time, else by its place or by where it lies
// from another object. No other object fits it, also where "to the left of" is read as further to the left, whatever
// the height. The scene has an object at least.
func (s Scene) Refer(r *rand.Rand) Referring {
	at := r.IntN(len(s.Objects))
	o := s.Objects[at]
	kind := ByLook
	if r.IntN(2) == 0 {
		kind = []string{ByPlace, ByRelation}[r.IntN(2)]
	}
	if kind == ByRelation && len(s.Objects) < 2 {
		kind = ByPlace
	}
	switch kind {
	case ByPlace:
		l := looks[r.IntN(len(looks))]
		return Referring{l.of(o) + " " + o.Place.Phrase(), kind, at} // no two objects share a place
	case ByRelation:
		other := (at + 1 + r.IntN(len(s.Objects)-1)) % len(s.Objects)
		from := s.Objects[other]
		l := s.clear(r, at, func(x int) bool { return x != other && beside(s.Objects[x].Place, o.Place, from.Place) })
		return Referring{l.of(o) + " " + between(o.Place, from.Place) + " the " + from.Name(), kind, at}
	}
	return Referring{s.clear(r, at, func(int) bool { return true }).of(o), kind, at}
}

// clear draws a look that fits one object alone of those that may be meant.
func (s Scene) clear(r *rand.Rand, at int, may func(x int) bool) look {
	for {
		l, alone := looks[r.IntN(len(looks))], true
		for x, b := range s.Objects {
			alone = alone && (x == at || !may(x) || !l.fits(s.Objects[at], b))
		}
		if alone { // colour and shape do for certain
			return l
		}
	}
}

// beside says whether a place lies from another as o does, on each axis where these two differ.
func beside(p, o, from Place) bool {
	same := func(p, o, from int) bool { return o == from || (p < from) == (o < from) && p != from }
	return same(p.Row(), o.Row(), from.Row()) && same(p.Column(), o.Column(), from.Column())
}
