package transform

import "math/rand/v2"

// op is one operation of RandAugment. It may use spare as its output; the
// result is the returned image, the other one is free afterwards.
type op struct {
	name string
	// run applies the operation at strength s in [0, 1]; sign is +1 or -1.
	run func(m, spare *Image, s, sign float64) (out, free *Image)
}

// operations of RandAugment in the order of ALBEF's code:
// no colour, contrast, solarize, posterize or cutout.
var operations = []op{
	{"Identity", func(m, t *Image, _, _ float64) (*Image, *Image) { return m, t }},
	{"AutoContrast", func(m, t *Image, _, _ float64) (*Image, *Image) { AutoContrast(m); return m, t }},
	{"Equalize", func(m, t *Image, _, _ float64) (*Image, *Image) { Equalize(m); return m, t }},
	{"Brightness", func(m, t *Image, s, _ float64) (*Image, *Image) { Brightness(m, enhanceFactor(s)); return m, t }},
	{"Sharpness", func(m, t *Image, s, _ float64) (*Image, *Image) { Sharpness(t, m, enhanceFactor(s)); return t, m }},
	{"ShearX", func(m, t *Image, s, sign float64) (*Image, *Image) { ShearX(t, m, sign*shear(s)); return t, m }},
	{"ShearY", func(m, t *Image, s, sign float64) (*Image, *Image) { ShearY(t, m, sign*shear(s)); return t, m }},
	{"TranslateX", func(m, t *Image, s, sign float64) (*Image, *Image) { TranslateX(t, m, sign*translate(s)); return t, m }},
	{"TranslateY", func(m, t *Image, s, sign float64) (*Image, *Image) { TranslateY(t, m, sign*translate(s)); return t, m }},
	{"Rotate", func(m, t *Image, s, sign float64) (*Image, *Image) { Rotate(t, m, sign*rotate(s)); return t, m }},
}

// Strengths at s = level/10, those of ALBEF's code. The translation is
// in pixels whatever the size of the image.
func enhanceFactor(s float64) float64 { return s*1.8 + 0.1 }
func shear(s float64) float64         { return s * 0.3 }
func translate(s float64) float64     { return s * 10 }
func rotate(s float64) float64        { return s * 30 }

// randAugment draws n operations with replacement; each is applied with
// probability 1/2 at strength level/10. It returns the result, which is m or
// spare, and the other of the two.
func randAugment(r *rand.Rand, m, spare *Image, n, level int) (out, free *Image) {
	for range n {
		// The same numbers are drawn whatever happens to them, so that one
		// operation's luck does not shift the next one's.
		k, u, v := r.IntN(len(operations)), r.Float64(), r.Float64()
		if u > 0.5 {
			continue
		}
		sign := 1.0
		if v > 0.5 {
			sign = -1
		}
		m, spare = operations[k].run(m, spare, float64(level)/10, sign)
	}
	return m, spare
}

// RandAugment returns m after n random operations of strength level (0 to 10).
// m is not changed.
func RandAugment(r *rand.Rand, m *Image, n, level int) *Image {
	out, _ := randAugment(r, m.Clone(), &Image{}, n, level)
	return out
}
