package schedule

// Momentum returns the momentum of the EMA twins at step t, with the update
// twin = m(t)*twin + (1-m(t))*parameter:
//
//	m(t) = min(m, (1+t) / (ramp+t))
//
// A twin of a model that starts from random weights would otherwise stay close
// to them for about 1/(1-m) steps. m(0) = 1/ramp makes the twin nearly a copy;
// the limit m is reached at t = (m*ramp - 1) / (1-m). ramp <= 0 means m always,
// as in the papers. A small ramp (10) follows the usual warm-up of averaged
// weights.
func Momentum(step int, m float64, ramp int) float64 {
	if ramp <= 0 {
		return m
	}
	return min(m, float64(1+step)/float64(ramp+step))
}
