package scenes

// Curtain hides a column of the grid of a picture behind grey stripes.
type Curtain uint8

// The curtains.
const (
	NoCurtain Curtain = iota
	LeftCurtain
	MiddleCurtain
	RightCurtain
)

// Hides says whether what lies in a place cannot be seen.
func (c Curtain) Hides(p Place) bool { return c != NoCurtain && p.Column() == int(c)-1 }

// stripes are the shades of a curtain, each of curtainStripe of the width of a picture.
var stripes = [2]uint8{120, 150}

const curtainStripe = 1. / 24

// draw hides the column in pix, step bytes a pixel.
func (c Curtain) draw(pix []uint8, size, step int) {
	if c == NoCurtain {
		return
	}
	for y := range size {
		for x := (int(c) - 1) * size / 3; x < int(c)*size/3; x++ {
			shade := stripes[int(float64(x)/(curtainStripe*float64(size)))%2]
			p := pix[(y*size+x)*step:]
			p[0], p[1], p[2] = shade, shade, shade
		}
	}
}
