package scenes

import "math/rand/v2"

// Hypothesis is a sentence about a picture that shows it to be true or false, or does not tell.
type Hypothesis struct {
	Text  string
	Label int    // 0: it is false, 1: the picture does not tell, 2: it is true
	Kind  string // what a false one has wrong, or "true" and "hidden"
}

// Hypothesis hangs a curtain before a column of the scene and draws a sentence about one place, with the three labels
// equally often. Text alone says nothing of the label: a place is hidden or not by the curtain, and what is said to be
// there is drawn alike for all.
func (s Scene) Hypothesis(r *rand.Rand) (Scene, Hypothesis) {
	label := r.IntN(3)
	s.Curtain = s.curtain(r)
	visible, hidden := s.split()
	switch label {
	case 1:
		place := hidden[r.IntN(len(hidden))]
		return s, Hypothesis{say(anyLook(r), place), label, "hidden"}
	case 2:
		o := s.seen()[r.IntN(len(s.seen()))]
		return s, Hypothesis{say(o, o.Place), label, "true"}
	}
	o := s.seen()[r.IntN(len(s.seen()))]
	switch wrong := r.IntN(3); wrong {
	case 0:
		o.Colour = Colour((int(o.Colour) + 1 + r.IntN(numColours-1)) % numColours)
		return s, Hypothesis{say(o, o.Place), label, "colour"}
	case 1:
		o.Shape = Shape((int(o.Shape) + 1 + r.IntN(numShapes-1)) % numShapes)
		return s, Hypothesis{say(o, o.Place), label, "shape"}
	}
	free := visible[:0]
	for _, p := range visible {
		if p != o.Place {
			free = append(free, p)
		}
	}
	place := free[r.IntN(len(free))]
	for _, other := range s.Objects { // which would make the sentence true
		if other.Place == place && other.Colour == o.Colour && other.Shape == o.Shape {
			o.Colour = Colour((int(o.Colour) + 1) % numColours)
		}
	}
	return s, Hypothesis{say(o, place), label, "place"}
}

// curtain draws one that leaves an object in sight.
func (s Scene) curtain(r *rand.Rand) Curtain {
	for {
		c := Curtain(1 + r.IntN(3))
		for _, o := range s.Objects {
			if !c.Hides(o.Place) {
				return c
			}
		}
	}
}

// seen are the objects that no curtain hides.
func (s Scene) seen() (list []Object) {
	for _, o := range s.Objects {
		if !s.Curtain.Hides(o.Place) {
			list = append(list, o)
		}
	}
	return list
}

// split returns the places that can be seen, and those that cannot.
func (s Scene) split() (visible, hidden []Place) {
	for p := Place(0); p < numPlaces; p++ {
		if s.Curtain.Hides(p) {
			hidden = append(hidden, p)
		} else {
			visible = append(visible, p)
		}
	}
	return visible, hidden
}

// anyLook draws what an object looks like.
func anyLook(r *rand.Rand) Object {
	return Object{Shape: Shape(r.IntN(numShapes)), Colour: Colour(r.IntN(numColours))}
}

// say is the sentence that an object of that look lies in a place.
func say(o Object, p Place) string { return "a " + o.Name() + " " + p.Phrase() }
