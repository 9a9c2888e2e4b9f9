package scenes

import "math/rand/v2"

// Proposals are boxes that an expression may mean, as a detector finds them.
const (
	numDistractors = 6   // boxes that are right for no object
	shift          = 0.1 // most that a side of an object's box is off, as a share of its length
	mostOverlap    = 0.4 // of a distractor with the box of any object, as intersection over union
)

// Proposals draws the boxes of all objects, each side a little off, and six that overlap no object by more than 0.4
// (intersection over union), in an order that says nothing. Lengths are shares of the picture's width.
func (s Scene) Proposals(r *rand.Rand) []Box {
	list := make([]Box, 0, len(s.Objects)+numDistractors)
	for _, o := range s.Objects {
		b := o.Box()
		w, h := b.X1-b.X0, b.Y1-b.Y0
		off := func(v, length float64) float64 { return min(max(v+shift*length*(2*r.Float64()-1), 0), 1) }
		list = append(list, Box{off(b.X0, w), off(b.Y0, h), off(b.X1, w), off(b.Y1, h)})
	}
	for len(list) < cap(list) {
		w, h := 0.12+0.3*r.Float64(), 0.12+0.3*r.Float64()
		x, y := (1-w)*r.Float64(), (1-h)*r.Float64()
		b := Box{x, y, x + w, y + h}
		clear := true
		for _, o := range s.Objects {
			clear = clear && b.overlap(o.Box()) <= mostOverlap
		}
		if clear {
			list = append(list, b)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// area of a box.
func (b Box) area() float64 { return max(b.X1-b.X0, 0) * max(b.Y1-b.Y0, 0) }

// overlap is intersection over union.
func (b Box) overlap(c Box) float64 {
	common := Box{max(b.X0, c.X0), max(b.Y0, c.Y0), min(b.X1, c.X1), min(b.Y1, c.Y1)}.area()
	return common / (b.area() + c.area() - common)
}
