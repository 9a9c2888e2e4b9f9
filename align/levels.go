package align

import "math"

// levels collects measures under permutations.
type levels struct {
	value [3]float64
	null  [3][]float64
}

func newLevels(value [3]float64) *levels { return &levels{value: value} }

func (l *levels) add(v [3]float64) {
	for i := range v {
		l.null[i] = append(l.null[i], v[i])
	}
}

// done returns the levels.
func (l *levels) done() (out [3]Level) {
	for i, null := range l.null {
		reached := 1
		var sum, squares float64
		for _, v := range null {
			sum += v
			if v >= l.value[i] {
				reached++
			}
		}
		mean := sum / float64(len(null))
		for _, v := range null {
			squares += (v - mean) * (v - mean)
		}
		out[i] = Level{Value: l.value[i], Null: mean, P: float64(reached) / float64(len(null)+1)}
		if len(null) > 1 {
			out[i].Deviation = math.Sqrt(squares / float64(len(null)-1))
		}
	}
	return out
}
