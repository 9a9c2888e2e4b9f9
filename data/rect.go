package data

// clipSlack is how many pixels a box may reach out of its picture as it is: annotations are rounded.
const clipSlack = 1

// Clip returns the part of r in a picture of w x h pixels, and whether that is another one by more than a pixel. Of a box outside of the picture nothing
// is left, in width or in height.
func (r Rect) Clip(w, h float64) (inside Rect, cut bool) {
	if r.X >= -clipSlack && r.Y >= -clipSlack && r.X+r.W <= w+clipSlack && r.Y+r.H <= h+clipSlack {
		return r, false
	}
	x0, y0, x1, y1 := max(r.X, 0), max(r.Y, 0), min(r.X+r.W, w), min(r.Y+r.H, h)
	return Rect{X: x0, Y: y0, W: max(x1-x0, 0), H: max(y1-y0, 0)}, true
}
