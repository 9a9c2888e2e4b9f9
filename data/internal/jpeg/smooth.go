package jpeg

import "github.com/geoalign/geoalign/data/internal/pixel"

// smoothed is the number of coefficients that are estimated of the means around a block where their scans
// are missing, and the mean.
const smoothed = 10

// smoothable tells whether a progressive frame lacks bits that can be estimated.
func (d *Decoder) smoothable() bool {
	useful := false
	for i := range d.n {
		c := &d.comp[i]
		if !c.latched || c.lacks[0] < 0 {
			return false
		}
		for z := range smoothed {
			if d.scans == 1 {
				c.lacked[z] = -1
			}
			if c.steps[natural[z]] == 0 {
				return false
			}
			useful = useful || z > 0 && c.lacks[z] != 0
		}
	}
	return useful
}

// kernels are the weights of the means around a block, row by row of 5 x 5, for the coefficients 1 to 9 in zigzag
// order, as libjpeg-turbo has had them since version 2.1: of a Gaussian, where no coefficient is known.
var kernels = [smoothed][25]int32{
	{-2, -6, -8, -6, -2, -6, 6, 42, 6, -6, -8, 42, 152, 42, -8, -6, 6, 42, 6, -6, -2, -6, -8, -6, -2},
	{-1, -1, 0, 1, 1, -3, 13, 0, -13, 3, -3, 38, 0, -38, 3, -3, 13, 0, -13, 3, -1, -1, 0, 1, 1},
	{-1, -3, -3, -3, -1, -1, 13, 38, 13, -1, 0, 0, 0, 0, 0, 1, -13, -38, -13, 1, 1, 3, 3, 3, 1},
	{0, 0, 1, 0, 0, 0, 2, 7, 2, 0, 0, -5, -14, -5, 0, 0, 2, 7, 2, 0, 0, 0, 1, 0, 0},
	{-1, 0, 0, 0, 1, 0, 9, 0, -9, 0, 0, 0, 0, 0, 0, 0, -9, 0, 9, 0, 1, 0, 0, 0, -1},
	{0, 0, 0, 0, 0, 0, 2, -5, 2, 0, 1, 7, -14, 7, 1, 0, 2, -5, 2, 0, 0, 0, 0, 0, 0},
	{6: 1, 8: -1, 11: 2, 13: -2, 16: 1, 18: -1},
	{6: 1, 7: -3, 8: 1, 16: -1, 17: 3, 18: -1},
	{6: 1, 8: -1, 11: -3, 13: 3, 16: 1, 18: -1},
	{6: 1, 7: 2, 8: 1, 16: -1, 17: -2, 18: -1},
}

// sharper are those where some are known, of the coefficients 1 to 5.
var sharper = [smoothed][25]int32{
	1: {10: -7, 11: 50, 13: -50, 14: 7},
	2: {2: -7, 7: 50, 17: -50, 22: 7},
	3: {2: -1, 7: 13, 12: -24, 17: 13, 22: -1},
	4: {1: -1, 3: 1, 5: -1, 6: 10, 8: -10, 9: 1, 15: 1, 16: -10, 18: 10, 19: -1, 21: 1, 23: -1},
	5: {10: -1, 11: 13, 12: -24, 13: 13, 14: -1},
}

// smoothRow computes the row by of blocks of a component, with estimates of what scans did not bring.
func (d *Decoder) smoothRow(c *component, my, by int) {
	lacks := &c.lacks
	if my > d.smoothedRows { // the last scan is cut before
		lacks = &c.lacked
	}
	weights, count := &kernels, smoothed
	for z := 1; z < smoothed; z++ {
		if lacks[z] != -1 {
			weights, count = &sharper, 6
		}
	}
	// Rows around, as far as there are; those of the last units end with them.
	rows := c.v
	if my == d.my-1 {
		rows = c.down - my*c.v
	}
	row, last := my*rows+by-my*c.v, rows*d.my-1
	var around [5][]pixel.Block
	for i := range around {
		at := min(max(row+i-2, 0), last) - row + by
		around[i] = c.coefs[at*c.wide:][:c.wide]
	}
	for bx := range c.across {
		var means [25]int32
		for i := range means {
			means[i] = int32(around[i/5][min(max(bx+i%5-2, 0), c.across-1)][0])
		}
		at := by*c.wide + bx
		b := c.coefs[at]
		more := c.seen[at] != 0
		for z := 1; z < count; z++ {
			if p := &b[natural[z]]; lacks[z] != 0 && *p == 0 {
				*p = c.estimate(&means, &weights[z], z, int(lacks[z]))
				more = more || *p != 0
			}
		}
		if weights == &kernels {
			b[0] = c.estimate(&means, &weights[0], 0, 0)
		}
		c.compute(&b, more, bx, by)
	}
}

// estimate is the value of coefficient z by the means around, rounded, below 1 << most where that is known.
func (c *component) estimate(means, weights *[25]int32, z, most int) int16 {
	sum := int32(0)
	for i, w := range weights {
		sum += w * means[i]
	}
	step := int64(uint16(c.steps[natural[z]]))
	v := int64(uint16(c.steps[0])) * int64(sum)
	p := int32((step<<7 + max(v, -v)) / (step << 8))
	if most > 0 {
		p = min(p, 1<<most-1)
	}
	if v < 0 {
		p = -p
	}
	return int16(p)
}
