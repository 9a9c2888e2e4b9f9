package align

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"gonum.org/v1/gonum/mat"
)

// Directions of a ridge map, which side it predicts from which. The empty one is BothWays.
const (
	BothWays    = "both"          // both maps, the mean of their cosines
	TextToImage = "text_to_image" // images are predicted from texts and compared with images
	ImageToText = "image_to_text" // texts are predicted from images and compared with texts
)

// Ridge is linear regression of one side Y on the other X with a penalty (Hoerl and Kennard
// 1970):
//
//	W = (X^T X + lambda I)^-1 X^T Y
//
// and cosines between prediction and Y. BothWays is better than either.
type Ridge struct {
	Prepare `toml:"-"`
	// both (the mean of the cosines of both maps) | text_to_image (texts are mapped to images) | image_to_text
	Direction string `toml:"direction" fixed:"run"`
	// in units of the mean eigenvalue of the covariance of the side that is mapped; 0: chosen by leave-one-out
	//
	// It is one of Lambdas, whose squared error is least. Directions without variance stay out whatever it is.
	Lambda   float64 `toml:"penalty" fixed:"run" max:"1000000"`
	Absolute bool    `toml:"-"` // Lambda is added to X^T X as it is
}

// Lambdas are the values that leave-one-out chooses from.
var Lambdas = []float64{1e-3, 1e-2, .03, .1, .3, 1, 3, 10, 30, 100}

// Defaults implements section.Defaulter.
func (r *Ridge) Defaults() { *r = Ridge{Direction: BothWays} }

// Check implements section.Checked.
func (r *Ridge) Check(k *section.Checker) {
	k.OneOf("direction", BothWays, TextToImage, ImageToText)
	k.NotNegative("penalty")
}

var _ momentMethod = Ridge{}

// Fit implements Method. The map is a *Linear.
func (r Ridge) Fit(e *compute.Engine, p Pairs) (Map, error) { return fitMoments(e, p, r) }

func (r Ridge) prepare() Prepare { return r.Prepare }

func (r Ridge) fit(e *compute.Engine, p Pairs, m *Moments) (Map, error) {
	if err := checkPenalty("Ridge.Lambda", r.Lambda); err != nil {
		return nil, err
	}
	switch r.Direction {
	case TextToImage:
		return r.from(e, p, m, Text)
	case ImageToText:
		return r.from(e, p, m, Image)
	case BothWays, "":
		a, err := r.from(e, p, m, Text)
		if err != nil {
			return nil, err
		}
		b, err := r.from(e, p, m, Image)
		if err != nil {
			return nil, err
		}
		return Concat(nil, a, b)
	}
	return nil, fmt.Errorf("align: Ridge.Direction is %q: choose BothWays, TextToImage or ImageToText", r.Direction)
}

// checkPenalty tests a penalty.
func checkPenalty(name string, lambda float64) error {
	if !(lambda >= 0) || math.IsInf(lambda, 0) {
		return fmt.Errorf("align: %s must be a number >= 0 (got %v)", name, lambda)
	}
	return nil
}

// from fits the map from a side to the other.
func (r Ridge) from(e *compute.Engine, p Pairs, m *Moments, s Side) (*Linear, error) {
	lambda := r.Lambda * m.scale(s)
	switch {
	case r.Lambda == 0:
		var err error
		if lambda, err = leaveOneOut(e, p, m, s); err != nil {
			return nil, err
		}
	case r.Absolute:
		lambda = r.Lambda / float64(m.Count)
	}
	w, err := m.regression(s, lambda)
	if err != nil {
		return nil, err
	}
	var maps [2]mat.Matrix
	maps[s] = w
	maps[s.Other()] = identity(len(m.Mean[s.Other()]))
	return newLinear(m, maps[Image], maps[Text]), nil
}

// cross returns the covariance of a side with the other.
func (m *Moments) cross(s Side) mat.Matrix {
	if s == Image {
		return m.Cross
	}
	return m.Cross.T()
}

// identity returns I (n, n).
func identity(n int) mat.Matrix {
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	return mat.NewDiagDense(n, ones)
}
