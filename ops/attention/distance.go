package attention

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// DistanceArgs say what is added to the scores of attention by how far a key is from its query.
type DistanceArgs struct {
	Heads, Len int // H and L
	// Window is the farthest distance of a key that is read; 0: there is none.
	Window int
	// Linear subtracts the distance times a slope of each head (ALiBi, Press et al. 2022), in both directions.
	Linear bool
}

// far is added to the score of a key beyond the window: finite, so that a query of padding all of whose keys are
// beyond it has a mean of values, and not NaN.
const far = -1e9

// DistanceBias returns a bias of attention without parameters: (H, L, L). like is any node of the computation.
func DistanceBias(like *gorgonia.Node, a DistanceArgs) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "distance bias", Args: fmt.Sprintf("%+v", a), Diff: []bool{false},
		Shape: func([]tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{a.Heads, a.Len, a.Len}, op.Need(a.Heads > 0 && a.Len > 0 && a.Window >= 0,
				"want at least one head and place, and a window of 0 or more (got %d, %d and %d)", a.Heads, a.Len,
				a.Window)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			slopes := slopes(a.Heads)
			return c.For(a.Heads, op.RowGrain(a.Len*a.Len), func(_, lo, hi int) {
				for h := lo; h < hi; h++ {
					out := c.Out.F32[h*a.Len*a.Len:][:a.Len*a.Len]
					for i := range a.Len {
						for j := range a.Len {
							d, v := max(i-j, j-i), float32(0)
							if a.Linear {
								v = -slopes[h] * float32(d)
							}
							if a.Window > 0 && d > a.Window {
								v = far
							}
							out[i*a.Len+j] = v
						}
					}
				}
			})
		},
	}, like)
}

// slopes are those of ALiBi for n heads: 2^(-8/n), its square and so on, and where n is not a power of two those of
// the next lower one, then every other one of the next higher.
func slopes(n int) []float32 {
	whole := 1 << int(math.Log2(float64(n)))
	list := make([]float32, 0, n)
	for i := range min(n, whole) {
		list = append(list, float32(math.Pow(2, -8*float64(i+1)/float64(whole))))
	}
	for i := 0; len(list) < n; i += 2 {
		list = append(list, float32(math.Pow(2, -4*float64(i+1)/float64(whole))))
	}
	return list
}
