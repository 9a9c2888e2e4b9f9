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

// DynamicMomentum returns m of the same update from the mean cosine of a batch's text features with those of
// the teacher. ViPMM (equation 26 and algorithm 1) prints theta_m = w*theta + (1-w)*theta_m with that cosine, at least
// 0 and at most 1, as w, which is 1-m here; with ofTeacher it is m itself, what MoCo calls momentum.
func DynamicMomentum(cosine float64, ofTeacher bool) float64 {
	w := min(max(cosine, 0), 1)
	if ofTeacher {
		return w
	}
	return 1 - w
}
