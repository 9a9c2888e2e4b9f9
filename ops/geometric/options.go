package geometric

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/ops/geometric/internal/oncuda"
)

// Kernels of squared distances d2; each is divided by its row sum (eq. 4 and section
// 4.2.2 of the paper).
const (
	Heat    = "heat"    // exp(-d2/(4 eps))
	Linear  = "linear"  // sqrt(d2)
	Squared = "squared" // d2
	Inverse = "inverse" // 1/(1+d2)
)

// Scales of the points before their distances are taken.
const (
	// Unit divides each point by its L2 norm, so that d2 lies in [0, 4].
	Unit = "unit"
	// Relative divides d2 by its mean over the pairs of different points of the
	// neighbourhood. After the head the mean is a function of the parameters, and the
	// gradient goes through it.
	Relative = "relative"
	// None takes the points as they are.
	None = "none"
)

// Options say how a neighbourhood becomes a kernel matrix.
type Options struct {
	Kernel string // Heat, Linear, Squared or Inverse
	// Epsilon is the width of Heat, above 0 (.8 in the paper). The others have none.
	Epsilon float32
	Scale   string // Unit, Relative or None
}

// onCUDA are the options as steps for the CUDA device know them.
func (o Options) onCUDA() oncuda.Options {
	return oncuda.Options{
		Kernel: slices.Index([]string{Heat, Linear, Squared, Inverse}, o.Kernel), Epsilon: o.Epsilon,
		Unit: o.Scale == Unit, Relative: o.Scale == Relative,
	}
}

// Check returns an error that names the setting that cannot be used.
func (o Options) Check() error {
	switch o.Kernel {
	case Heat:
		if !(o.Epsilon > 0) || o.Epsilon > math.MaxFloat32 {
			return fmt.Errorf("geometric: epsilon must be above 0 and finite (got %v): the paper has 0.8 on unit vectors", o.Epsilon)
		}
	case Linear, Squared, Inverse:
	default:
		return fmt.Errorf("geometric: unknown kernel %q: choose %s, %s, %s or %s", o.Kernel, Heat, Linear, Squared,
			Inverse)
	}
	switch o.Scale {
	case Unit, Relative, None:
		return nil
	}
	return fmt.Errorf("geometric: unknown scale %q: choose %s, %s or %s", o.Scale, Unit, Relative, None)
}

const (
	// normFloor is the least norm that Unit divides by.
	normFloor = 1e-12
	// coincide times the sum of their squared norms is the squared distance up to which
	// two points coincide.
	coincide = 1e-12
)
