package interact

import "math"

// Samples are similarities of words to their nearest regions in the batches of an update: of words
// that match an image, and of words that do not.
type Samples struct{ Matched, Mismatched Moments }

// Moments are a number of values, their sum and that of their squares.
type Moments struct{ N, Sum, Squares float64 }

// Add adds the results of an op interaction.MismatchSamples, six values of each process.
func (s *Samples) Add(sums []float32) {
	for ; len(sums) >= 6; sums = sums[6:] {
		s.Matched.add(sums[:3])
		s.Mismatched.add(sums[3:6])
	}
}

func (m *Moments) add(x []float32) {
	m.N, m.Sum, m.Squares = m.N+float64(x[0]), m.Sum+float64(x[1]), m.Squares+float64(x[2])
}

// normal returns the mean and the standard deviation, with n - 1 values.
func (m Moments) normal() (mean, deviation float64) {
	mean = m.Sum / m.N
	return mean, math.Sqrt(max(0, m.Squares-m.N*mean*mean) / (m.N - 1))
}

// Values of the published code.
const (
	enoughWords   = 200 // more samples than this move the boundary
	boundaryShare = 0.7 // of a new boundary in the moving one
	safeDistance  = 3   // deviations from the mean of matched words to the boundary of evaluation
)

// Boundary moves the boundaries of training and of evaluation towards those of the samples. With
// normal distributions of matched and of mismatched similarities, that of training is the
// similarity at which the density of matched words is penalty times the one of mismatched words
// (NAAF, Zhang et al. 2022, with the explicit solution of the published code); that of evaluation
// lies three deviations below the mean of matched words. A boundary outside [0, 1] is 0. Too few
// samples, or distributions without such a point, move nothing.
func (s *Samples) Boundary(training, evaluation, penalty float64) (t, safe float64) {
	if s.Matched.N <= enoughWords {
		return training, evaluation
	}
	mean, deviation := s.Matched.normal()
	cross, ok := crossing(mean, deviation, penalty, s.Mismatched)
	if !ok {
		return training, evaluation
	}
	move := func(from, to float64) float64 {
		if !(to >= 0 && to <= 1) {
			to = 0
		}
		return boundaryShare*to + (1-boundaryShare)*from
	}
	return move(training, cross), move(evaluation, mean-safeDistance*deviation)
}

// crossing solves N(t; mean, deviation) = penalty N(t; m, d) for the m and d of mismatched words.
func crossing(mean, deviation, penalty float64, mismatched Moments) (t float64, ok bool) {
	m, d := mismatched.normal()
	v, w := deviation*deviation, d*d
	if !(v > 0 && w > 0) {
		return 0, false
	}
	a, b := v-w, 2*(mean*w-m*v)
	c := m*m*v - mean*mean*w + 2*v*w*math.Log(d/(penalty*deviation))
	root := b*b - 4*a*c
	switch root = math.Sqrt(max(root, 0)); {
	case b*b-4*a*c <= 0:
		return 0, false
	case b > 0: // the same solution, which is one with equal deviations too
		return -2 * c / (b + root), true
	case a == 0:
		return 0, false
	}
	return (root - b) / (2 * a), true
}
