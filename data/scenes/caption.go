package scenes

import (
	"math/rand/v2"
	"strings"
)

// numbers are the words for how many objects a scene has.
var numbers = [MaxObjects + 1]string{"zero", "one", "two", "three", "four"}

// Phrasing is a way to put a scene into words. All name every object with size,
// colour and shape, in lower case and at most 25 words.
type Phrasing uint8

const (
	// Places lists the objects in reading order with their places: "a small red
	// circle at the top left and a big blue star in the centre", from three
	// objects on shortened to "small red circle top left, big blue star centre
	// and ...". It is the canonical phrasing: it says everything that Key holds.
	Places Phrasing = iota
	// PlacesFirst names each place before its object.
	PlacesFirst
	// ThereIs is Places as a sentence: "there is a ...", from three objects on
	// "three objects: ...".
	ThereIs
	// Relations names the places of the objects relative to each other, of one
	// object alone its place: "a small red circle above and to the left of a big
	// blue star"; a longer chain says where each object is seen from the last.
	Relations
	numPhrasings = iota
)

// relationShare is the share of random captions that use Relations: these leave
// the absolute place open, so too many of them slow down learning places.
const relationShare = 0.15

// Caption returns the scene in a phrasing drawn with r, in the canonical
// phrasing ([Places]) when r is nil. Evaluation uses the canonical one: it is
// different for scenes that differ in any fact.
func (s Scene) Caption(r *rand.Rand) string {
	if r == nil {
		return s.CaptionIn(Places)
	}
	u := r.Float64()
	if u < relationShare {
		return s.CaptionIn(Relations)
	}
	u = (u - relationShare) / (1 - relationShare)
	switch { // the phrasing of evaluation makes up half of the others
	case u < 0.5:
		return s.CaptionIn(Places)
	case u < 0.75:
		return s.CaptionIn(PlacesFirst)
	}
	return s.CaptionIn(ThereIs)
}

// Captions returns the scene in every phrasing, the canonical one first.
func (s Scene) Captions() []string {
	out := make([]string, numPhrasings)
	for p := range out {
		out[p] = s.CaptionIn(Phrasing(p))
	}
	return out
}

// CaptionIn returns the scene in the phrasing p.
func (s Scene) CaptionIn(p Phrasing) string {
	var b strings.Builder
	switch {
	case p == Relations:
		s.writeRelations(&b)
	case p == ThereIs && len(s.Objects) <= 2:
		b.WriteString("there is ")
		s.writePlaces(&b, false)
	case p == ThereIs:
		b.WriteString(numbers[len(s.Objects)] + " objects: ")
		s.writePlaces(&b, false)
	default:
		s.writePlaces(&b, p == PlacesFirst)
	}
	return b.String()
}

// writePlaces lists the objects with their places, before or after the object.
func (s Scene) writePlaces(b *strings.Builder, placeFirst bool) {
	short := len(s.Objects) > 2
	for i, o := range s.Objects {
		switch {
		case i == 0:
		case i == len(s.Objects)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		name, place := "a "+o.FullName(), o.Place.Phrase()
		if short {
			name, place = o.FullName(), o.Place.String()
		}
		switch {
		case !placeFirst:
			b.WriteString(name + " " + place)
		case short:
			b.WriteString(place + ": " + name)
		default:
			b.WriteString(place + " " + name)
		}
	}
}

func (s Scene) writeRelations(b *strings.Builder) {
	first := s.Objects[0]
	if len(s.Objects) == 1 {
		b.WriteString("only a " + first.FullName() + " " + first.Place.Phrase())
		return
	}
	b.WriteString("a " + first.FullName())
	if len(s.Objects) == 2 {
		second := s.Objects[1]
		b.WriteString(" " + between(first.Place, second.Place) + " a " + second.FullName())
		return
	}
	for i, o := range s.Objects[1:] {
		b.WriteString(", " + seenFrom(s.Objects[i].Place, o.Place) + " a " + o.FullName())
	}
}

// between says where place a lies relative to b, on both axes where they differ.
func between(a, b Place) string {
	vertical, horizontal := "", ""
	switch {
	case a.Row() < b.Row():
		vertical = "above"
	case a.Row() > b.Row():
		vertical = "below"
	}
	switch {
	case a.Column() < b.Column():
		horizontal = "to the left of"
	case a.Column() > b.Column():
		horizontal = "to the right of"
	}
	switch {
	case vertical == "":
		return horizontal
	case horizontal == "":
		return vertical
	}
	return vertical + " and " + horizontal
}

// seenFrom says where place b lies from a, on the axis of the larger distance.
func seenFrom(a, b Place) string {
	dx, dy := b.Column()-a.Column(), b.Row()-a.Row()
	switch {
	case dx > 0 && dx >= abs(dy):
		return "to its right"
	case dx < 0 && -dx >= abs(dy):
		return "to its left"
	case dy > 0:
		return "below it"
	}
	return "above it"
}

func abs(x int) int { return max(x, -x) }
