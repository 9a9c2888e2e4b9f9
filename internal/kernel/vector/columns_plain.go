package vector

func plainColumnMoments(sum, square []float64, x, from []float32) {
	for n := len(from); len(x) > 0; x = x[n:] {
		for j, v := range x[:n] {
			d := float64(v - from[j])
			sum[j] += d
			square[j] += d * d
		}
	}
}

// value is y before the positive part is taken. The conversion keeps the compiler from joining product and sum.
func (c *Columns) value(j int, x float32) float32 {
	return float32((x-c.Mean[j])*c.Scale[j]) + c.Shift[j]
}

// gate is dy where it counts.
func (c *Columns) gate(j int, x, dy float32) float32 {
	if c.ReLU && !(c.value(j, x) > 0) {
		return 0
	}
	return dy
}

func (c *Columns) plainSums(sum, product []float64, x, dy []float32) {
	for n := len(c.Mean); len(x) > 0; x, dy = x[n:], dy[n:] {
		for j, v := range x[:n] {
			g := float64(c.gate(j, v, dy[j]))
			sum[j] += g
			product[j] += g * float64(v-c.Mean[j])
		}
	}
}

func (c *Columns) plainApply(y, x, add []float32) {
	for i, v := range x {
		v = c.value(i%len(c.Mean), v)
		if add != nil {
			v += add[i]
		}
		if c.ReLU {
			v = max(v, 0)
		}
		y[i] = v
	}
}

func (c *Columns) plainGrad(dx, x, dy, a, b []float32) {
	for i, v := range x {
		j := i % len(c.Mean)
		dx[i] = float32(c.gate(j, v, dy[i])*c.Scale[j]) + (float32((v-c.Mean[j])*b[j]) + a[j])
	}
}

func plainReLU(dst, x []float32) {
	for i := range dst {
		dst[i] = max(x[i], 0)
	}
}

func plainClip(dst, x []float32, limit float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = min(max(v, 0), limit)
	}
}

func plainReLUGrad(dx, y, dy []float32) {
	for i := range dx {
		if y[i] > 0 {
			dx[i] = dy[i]
		} else {
			dx[i] = 0
		}
	}
}
