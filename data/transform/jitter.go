package transform

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// Strengths of the colour jitter of MoCo v2 (Chen et al. 2020) and TCL (Yang et al. 2022):
// ColorJitter(0.4, 0.4, 0.4, 0.1), and of the blur.
const (
	jitterFactor = 0.4 // factors of brightness, contrast and saturation are uniform in 1 -+ this
	jitterHue    = 0.1 // the hue turns by a share of the circle uniform in -+ this
	minSigma     = 0.1 // standard deviation of the blur in pixels
	maxSigma     = 2.0
)

// Colour reports whether t jitters, greys or blurs.
func (t Train) Colour() bool { return t.Jitter > 0 || t.Gray > 0 || t.Blur > 0 }

// colour jitters, greys and blurs m, in place, each with its probability and in this
// order. None of them depends on left and right, so it makes no
// difference that TCL's code mirrors afterwards and m is mirrored already.
func (t Train) colour(r *rand.Rand, m *Image, z *blurrer) {
	// The same numbers are drawn whatever happens to them, so that one operation's
	// luck does not shift the next one's.
	if t.Jitter > 0 {
		j, u := drawJitter(r), r.Float64()
		if u < t.Jitter {
			j.apply(m)
		}
	}
	if t.Gray > 0 && r.Float64() < t.Gray {
		Gray(m)
	}
	if t.Blur > 0 {
		sigma, u := between(r, minSigma, maxSigma), r.Float64()
		if u < t.Blur {
			z.gaussian(m, sigma)
		}
	}
}

// jitter is one draw of torchvision's ColorJitter.
type jitter struct {
	order                                   [4]uint8 // 0 brightness, 1 contrast, 2 saturation, 3 hue
	brightness, contrast, saturation, turns float64
}

func drawJitter(r *rand.Rand) jitter {
	j := jitter{order: [4]uint8{0, 1, 2, 3}}
	for i := 3; i > 0; i-- {
		k := r.IntN(i + 1)
		j.order[i], j.order[k] = j.order[k], j.order[i]
	}
	j.brightness = between(r, 1-jitterFactor, 1+jitterFactor)
	j.contrast = between(r, 1-jitterFactor, 1+jitterFactor)
	j.saturation = between(r, 1-jitterFactor, 1+jitterFactor)
	j.turns = between(r, -jitterHue, jitterHue)
	return j
}

func between(r *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }

func (j *jitter) apply(m *Image) {
	for _, k := range j.order {
		switch k {
		case 0:
			Brightness(m, j.brightness)
		case 1:
			Contrast(m, j.contrast)
		case 2:
			Saturation(m, j.saturation)
		case 3:
			Hue(m, j.turns)
		}
	}
}

// Gray replaces every pixel of m by its brightness (Image.convert("L"), torchvision's
// RandomGrayscale), in place.
func Gray(m *Image) { pixel.Saturate(m.Pix, 0) }

// Contrast moves every value of m away from the mean brightness by factor
// (PIL.ImageEnhance.Contrast), in place.
func Contrast(m *Image, factor float64) {
	mean := int(float64(pixel.LumaSum(m.Pix))/float64(m.W*m.H) + 0.5)
	pixel.Shade(m.Pix, float32(mean), float32(factor))
}

// Saturation moves every pixel of m away from its brightness by factor
// (PIL.ImageEnhance.Color), in place.
func Saturation(m *Image, factor float64) { pixel.Saturate(m.Pix, float32(factor)) }
