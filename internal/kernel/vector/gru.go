package vector

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// GRU does what follows the products of a step of a gated recurrent unit (Cho et al. 2014, in
// the form of PyTorch and cuDNN):
//
//	reset  = sigmoid(reset)
//	update = sigmoid(update)
//	new    = tanh(new + reset*gate)
//	h      = (1-update)*new + update*h
//
// gate is what the old state gives to new. The absolute error of a gate is below 2e-7. The
// length is that of h.
func GRU(h, new, reset, update, gate []float32) {
	n := len(h)
	ph, pn, pr, pz, pg := at(h, n), at(new, n), at(reset, n), at(update, n), at(gate, n)
	if !cpu.HasVectors {
		plainGRU(h, new, reset, update, gate)
		return
	}
	gruVec(ph, pn, pr, pz, pg, n)
}

// GRUGrad is the gradient of GRU: of new, reset, update and gate as GRU left them it makes
// the gradients of what GRU was given. dh is the gradient of the state that comes from later
// steps and dy that of the state itself, which are added; dh is then the gradient of the state before,
// before, so far as it does not come through the products.
func GRUGrad(dh, new, reset, update, gate, dy, before []float32) {
	n := len(dh)
	ph, pn, pr, pz, pg := at(dh, n), at(new, n), at(reset, n), at(update, n), at(gate, n)
	py, pb := at(dy, n), at(before, n)
	if !cpu.HasVectors {
		plainGRUGrad(dh, new, reset, update, gate, dy, before)
		return
	}
	gruGradVec(ph, pn, pr, pz, pg, py, pb, n)
}

func plainGRU(h, new, reset, update, gate []float32) {
	for i, v := range h {
		r, z := plainSigmoid(reset[i]), plainSigmoid(update[i])
		c := float32(math.Tanh(float64(new[i]) + float64(r)*float64(gate[i])))
		reset[i], update[i], new[i], h[i] = r, z, c, c+z*(v-c)
	}
}

func plainSigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

func plainGRUGrad(dh, new, reset, update, gate, dy, before []float32) {
	for i := range dh {
		g, c, r, z := dh[i]+dy[i], new[i], reset[i], update[i]
		dn := g * (1 - z) * (1 - c*c)
		dr := dn * gate[i] * r
		dh[i], new[i], update[i], gate[i], reset[i] = g*z, dn, g*z*(before[i]-c)*(1-z), dn*r, dr-dr*r
	}
}
