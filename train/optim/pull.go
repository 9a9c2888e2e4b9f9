package optim

// Pull is what besides the gradient moves the weights of a learned metric: blocks of Side x Side numbers, or with Side
// 1 a diagonal. The zero value is none. Both parts are decoupled from the moments of AdamW, times the learning rate:
//
//	w <- w - lr Decay (w - e)                               e: 0, or with Identity that of the identity
//	w <- sign(w) max(|w| - lr L1, 0)   off the diagonal     the proximal step of L1 |w|
type Pull struct {
	Decay    float64 // instead of optimizer.decay
	Identity bool
	L1       float64
	Side     int
}

// pull is a Pull of the elements behind offset of the slab.
type pull struct {
	Pull
	offset int
}

// after completes an update of values, elements from lo of the slab on, by AdamW, which has decayed them toward 0.
func (p *pull) after(values []float32, lo int, lr float32) {
	if p == nil {
		return
	}
	d, shift, least := p.Side, float32(0), lr*float32(p.L1)
	if p.Identity {
		shift = lr * float32(p.Decay)
	}
	for i, v := range values {
		k := (lo - p.offset + i) % (d * d)
		switch {
		case k/d == k%d:
			values[i] = v + shift
		case v > 0:
			values[i] = max(v-least, 0)
		default:
			values[i] = min(v+least, 0)
		}
	}
}
