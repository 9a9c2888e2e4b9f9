package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/tensor"
)

// partSums are two sums of each column, in float64, made in parts of the rows and then added up. The shape fixes the
// parts, so that the sums do not depend on the threads.
type partSums struct {
	rows, parts, room int
	values            []float64
}

const (
	partRows  = 128 // least rows of a part
	mostParts = 32
)

// partsOf is how many parts so many rows have.
func partsOf(rows int) int { return min(max(rows/partRows, 1), mostParts) }

// partScratch is the memory of the sums over rows of shape x, at the beginning of the call's.
func partScratch(x tensor.Shape) int { return 4 * partsOf(x[0]) * vector.SumsRoom(x[1]) }

// newPartSums are the sums over operand x of a call.
func newPartSums(c *exec.Call, x int) *partSums {
	s := c.In[x].Shape
	return &partSums{rows: s[0], parts: partsOf(s[0]), room: vector.SumsRoom(s[1]),
		values: vector.Doubles(c.Scratch[:partScratch(s)])}
}

// from is the first row of part p.
func (s *partSums) from(p int) int { return p * s.rows / s.parts }

// begin returns the two sums of part p, which are 0.
func (s *partSums) begin(p int) (a, b []float64) {
	both := s.values[2*p*s.room:][:2*s.room]
	clear(both)
	return both[:s.room], both[s.room:]
}

// total adds the parts up.
func (s *partSums) total() (a, b []float64) {
	all := s.values[:2*s.room]
	for p := 1; p < s.parts; p++ {
		for j, v := range s.values[2*p*s.room:][:2*s.room] {
			all[j] += v
		}
	}
	return all[:s.room], all[s.room:]
}
