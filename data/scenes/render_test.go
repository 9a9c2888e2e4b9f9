package scenes

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

// one returns a scene with a single black object on the lightest background.
func one(shape Shape, radius, x, y float64) Scene {
	return Scene{Objects: []Object{{Shape: shape, X: x, Y: y, Radius: radius, RGB: [3]uint8{0, 0, 0}}}}
}

// inked returns the area of black in pixels, edges counted by their shade.
func inked(s Scene, size int) float64 {
	pix := make([]uint8, size*size*3)
	s.RenderRGB(pix, size)
	white := float64(s.Background.RGB()[0])
	area := 0.0
	for i := 0; i < len(pix); i += 3 {
		area += 1 - float64(pix[i])/white
	}
	return area
}

// Areas with closed forms: pi r^2, pi (r^2 - inner^2), (2h)^2, half of base x
// height, half the product of the diagonals, two bars less their overlap.
func TestAreas(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		unit  float64
	}{
		{Circle, math.Pi},
		{Ring, math.Pi * (1 - ringInner*ringInner)},
		{Square, 4 * squareHalf * squareHalf},
		{Triangle, 0.98 * (triangleBase - triangleTop)},
		{Diamond, 2 * diamondHalf},
		{Cross, 8*crossHalf*crossReach - 4*crossHalf*crossHalf},
	} {
		for _, radius := range sizeRadius {
			for _, x := range []float64{0.5, 0.503, 0.5071} { // positions within a pixel
				want := c.unit * radius * radius * 64 * 64
				got := inked(one(c.shape, radius, x, 0.4987), 64)
				if !(math.Abs(got-want) <= 0.02*want) {
					t.Errorf("%s of radius %g at %g: area %.2f pixels, want %.2f within 2%%", c.shape, radius, x, got, want)
				}
			}
		}
	}
}

// Star and heart have no short closed form: count points of a fine raster whose
// distance is negative.
func TestCoverageAgainstSupersampling(t *testing.T) {
	const size, fine = 32, 16
	for shape := range Shape(numShapes) {
		s := one(shape, 0.31, 0.493, 0.507)
		o := s.Objects[0]
		pix := make([]uint8, size*size*3)
		s.RenderRGB(pix, size)
		white := float64(s.Background.RGB()[0])
		worst, edges := 0.0, 0
		for y := range size {
			for x := range size {
				inside := 0
				for j := range fine {
					for i := range fine {
						u := ((float64(x)+(float64(i)+0.5)/fine)/size - o.X) / o.Radius
						v := ((float64(y)+(float64(j)+0.5)/fine)/size - o.Y) / o.Radius
						if shapeDistance[shape](u, v) < 0 {
							inside++
						}
					}
				}
				want := float64(inside) / (fine * fine)
				got := 1 - float64(pix[(y*size+x)*3])/white
				worst = max(worst, math.Abs(got-want))
				if got > 0.1 && got < 0.9 {
					edges++
				}
			}
		}
		// Corners of 36 degrees (star) are where a distance says least about an area.
		if worst > 0.3 {
			t.Errorf("%s: a pixel's coverage is off by %.2f", shape, worst)
		}
		if edges < 8 {
			t.Errorf("%s: only %d soft edge pixels", shape, edges)
		}
	}
}

// The box must contain the outline and touch it on all four sides.
func TestBoxesAreTight(t *testing.T) {
	const n = 400
	for shape := range Shape(numShapes) {
		var got Box
		got.X0, got.Y0, got.X1, got.Y1 = 9, 9, -9, -9
		for j := range n {
			for i := range n {
				u, v := (float64(i)+0.5)/n*2.4-1.2, (float64(j)+0.5)/n*2.4-1.2
				if shapeDistance[shape](u, v) < 0 {
					got.X0, got.X1 = min(got.X0, u), max(got.X1, u)
					got.Y0, got.Y1 = min(got.Y0, v), max(got.Y1, v)
				}
			}
		}
		want := shapeExtent[shape]
		for i, d := range []float64{got.X0 - want.X0, got.Y0 - want.Y0, want.X1 - got.X1, want.Y1 - got.Y1} {
			if d < -1e-9 || d > 0.03 { // 0.006 raster, and thin tips fall between its points
				t.Errorf("%s side %d: raster %+v, extent %+v", shape, i, got, want)
			}
		}
		if want.X0 < -1.0001 || want.Y0 < -1.0001 || want.X1 > 1.0001 || want.Y1 > 1.0001 {
			t.Errorf("%s: extent %+v leaves the unit square", shape, want)
		}
	}
}

func TestRenderEqualsRenderRGB(t *testing.T) {
	for _, s := range drawn(20) {
		img := s.Render(48)
		pix := make([]uint8, 48*48*3)
		for i := range pix {
			pix[i] = 77 // RenderRGB must overwrite what was there
		}
		s.RenderRGB(pix, 48)
		for i := range 48 * 48 {
			if [3]uint8(img.Pix[i*4:i*4+3]) != [3]uint8(pix[i*3:i*3+3]) || img.Pix[i*4+3] != 255 {
				t.Fatalf("pixel %d: %v and %v", i, img.Pix[i*4:i*4+4], pix[i*3:i*3+3])
			}
		}
	}
	if b := drawn(1)[0].Render(0).Bounds(); b.Dx() != 64 || b.Dy() != 64 {
		t.Errorf("default size %v", b)
	}
}

// An object's middle pixel has its own colour; the ring's is background.
func TestColoursArePainted(t *testing.T) {
	for _, s := range drawn(200) {
		pix := make([]uint8, 64*64*3)
		s.RenderRGB(pix, 64)
		for _, o := range s.Objects {
			want := o.RGB
			if o.Shape == Ring {
				want = s.Background.RGB()
			}
			at := (int(o.Y*64)*64 + int(o.X*64)) * 3
			if got := [3]uint8(pix[at : at+3]); got != want {
				t.Fatalf("%s: middle pixel %v, want %v", o.Name(), got, want)
			}
		}
	}
}

func TestColoursAreApart(t *testing.T) {
	distance := func(a, b [3]uint8) float64 {
		d := 0.0
		for c := range 3 {
			x := float64(a[c]) - float64(b[c])
			d += x * x
		}
		return math.Sqrt(d)
	}
	// Two tints move two colours together by at most 2 * sqrt(3) * tint = 35.
	for a := range Colour(numColours) {
		for b := range a {
			if d := distance(a.RGB(), b.RGB()); d < 75 {
				t.Errorf("%s and %s are %.0f apart", a, b, d)
			}
		}
		for b := range Background(numBackgrounds) {
			if d := distance(a.RGB(), b.RGB()); d < 75 {
				t.Errorf("%s and background %d are %.0f apart", a, b, d)
			}
		}
	}
}

func TestRenderDoesNotAllocate(t *testing.T) {
	s := drawn(1)[0]
	pix := make([]uint8, 64*64*3)
	if n := allocs.PerRun(20, func() { s.RenderRGB(pix, 64) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRenderRGB(b *testing.B) {
	all := drawn(64)
	pix := make([]uint8, 64*64*3)
	for i := 0; b.Loop(); i++ {
		all[i%len(all)].RenderRGB(pix, 64)
	}
}
