package scenes

// Classes returns the names of the classes of a world's scenes, for classification:
// every colour with every shape that the world uses, shape by shape, as in "red
// circle". The order is that of the numbers which Class returns.
func (w *World) Classes() []string {
	names := make([]string, 0, w.cfg.Shapes*w.cfg.Colours)
	for s := range w.cfg.Shapes {
		for c := range w.cfg.Colours {
			names = append(names, Object{Shape: Shape(s), Colour: Colour(c)}.Name())
		}
	}
	return names
}

// Class returns the class of a scene: colour and shape of its biggest object, of
// equally big ones the first in reading order (Size is what counts, not the area of
// the outline). It depends on the facts of the scene alone.
func (w *World) Class(s Scene) int {
	o := s.Objects[s.main()]
	return int(o.Shape)*w.cfg.Colours + int(o.Colour)
}

// main is the index of the biggest object, of equally big ones the first.
func (s Scene) main() int {
	best := 0
	for i, o := range s.Objects {
		if o.Size > s.Objects[best].Size {
			best = i
		}
	}
	return best
}
