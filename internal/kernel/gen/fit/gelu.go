// Package fit has the coefficients that several generators of assembly use, from the highest power down. They are those
// of experiments/fit_vector.py.
package fit

// GELU for results of bfloat16, whose rounding loses 2e-3 to 4e-3: x Phi(x) = max(x, 0) - a (1-Phi(a)) of a = min(|x|,
// HalfTailEnd), and its derivative by h = (1-Phi(a)) (1 - a phi(a)/(1-Phi(a))), which is that of a negative x, and 1 -
// h that of another one.
var (
	// HalfExp2 is 2^r for r in [0, 1), of relative error 2.6e-6.
	HalfExp2 = []float32{0.013534167781472206, 0.052011460065841675, 0.2414427548646927, 0.6930038332939148,
		1.0000026226043701}
	// HalfLogTail is log2(1-Phi(a)): 1-Phi has a relative error of 2.4e-5 up to 5, and of 1.5e-3 up to HalfTailEnd.
	HalfLogTail = []float32{4.764242333976654e-08, -2.6812442683876725e-06, 6.525959179271013e-05,
		-0.0009133894345723093, 0.008308229967951775, -0.05330662801861763, -0.45935627818107605, -1.1508082151412964,
		-1.000034213066101}
	// HalfMills is 1 - a phi(a)/(1-Phi(a)), of error 2.4e-5 in its product with 1-Phi, and relative to that of 7.1e-5
	// up to 5.
	HalfMills = []float32{-4.245902346156072e-06, 0.00016194152703974396, -0.0025131891015917063, 0.021089859306812286,
		-0.10805317014455795, -0.6385593414306641, -0.7972652316093445, 1}
)

// HalfTailEnd is the last a whose 1-Phi, 1.5e-37, is a normal number, as then are GELU and its derivative of all
// beyond: subnormal ones take long, and some instructions take them for 0.
const HalfTailEnd = 12.75

// RoundDown is the immediate of VREDUCEPS that gives x - floor(x).
const RoundDown = 9
