package kernel

// ArgMax returns the first index of the largest value of x. A NaN is never the largest;
// if all are NaN, it returns 0. An empty x is a panic.
func ArgMax(x []float32) int {
	if len(x) == 0 {
		panic("kernel: vector: the largest of no values")
	}
	return plainArgMax(x)
}

func plainArgMax(x []float32) int {
	best, found := 0, false
	for i, v := range x {
		if v > x[best] || !found && v == v {
			best, found = i, true
		}
	}
	return best
}
