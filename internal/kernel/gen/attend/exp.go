package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Coefficients of experiments/fit_vector.py: 2^r on [0, 1) with a relative error of 2.6e-6, a thousandth of what
// rounding to bfloat16 loses, and log2(1+r)/r on [0, 1) with an absolute error of log2(1+r) of 3.1e-7.
var (
	exp2 = []float32{1.00000259, 0.69300384, 0.24144276, 0.05201146, 0.01353417}
	log2 = []float32{1.44266783, -0.72058547, 0.4735534, -0.32590195, 0.19429428, -0.07955769, 0.01552991}
)

// Immediates: round down and do not say so; a mantissa in [1, 2).
const roundDown, fromOne = 9, 0

// number loads a constant.
func number(v float32, r reg.VecPhysical) {
	bits := math.Float32bits(v)
	VBROADCASTSS(table(fmt.Sprintf("attend%08x", bits), func(int) uint32 { return bits }), r)
}

// exponential holds the constants of exp.
type exponential struct {
	log2E        reg.VecPhysical
	coefficients []reg.VecPhysical
}

// exponentials loads the constants into registers from the highest number down and returns how many registers are left.
func exponentials() (exponential, int) {
	e := exponential{log2E: zmm[31]}
	number(math.Log2E, e.log2E)
	next := 31
	for _, c := range exp2 {
		next--
		number(c, zmm[next])
		e.coefficients = append(e.coefficients, zmm[next])
	}
	return e, next
}

// exp sets each of x to exp(x - shift/log2 e); room is two registers for each. NaNs stay. Rounding to the nearest
// integer by an addition and putting it into the exponent by a shift, in place of VREDUCEPS and VSCALEFPS, takes as
// long on a Zen 5.
func (e exponential) exp(x, room []reg.VecPhysical, shift reg.VecPhysical) {
	each := func(f func(x, r, p reg.VecPhysical)) {
		for i := range x {
			f(x[i], room[2*i], room[2*i+1])
		}
	}
	each(func(x, _, _ reg.VecPhysical) { VFMSUB213PS(shift, e.log2E, x) })
	each(func(x, r, _ reg.VecPhysical) { VREDUCEPS(Imm(roundDown), x, r) }) // x - floor(x), and 0 for -Inf
	last := len(e.coefficients) - 1
	each(func(_, r, p reg.VecPhysical) {
		VMOVAPS(e.coefficients[last], p)
		VFMADD213PS(e.coefficients[last-1], r, p)
	})
	for _, c := range []int{2, 1, 0} {
		each(func(_, r, p reg.VecPhysical) { VFMADD213PS(e.coefficients[c], r, p) })
	}
	each(func(x, _, p reg.VecPhysical) { VSCALEFPS(x, p, x) }) // p times 2 to the floor of x, and 0 for -Inf
}
