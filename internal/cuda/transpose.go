package cuda

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed transpose.cu
var transposeText string

var transposeSource = Source{Name: "transpose", Text: transposeText}

// Transpose returns what enqueues to (cols, rows) = from (rows, cols) transposed: floats to values of the type of like.
// Each of the two is an operand or a Pointer.
func Transpose(c *exec.DeviceCall, like exec.Operand) func(to, from any, rows, cols int) {
	k := Load(c, &transposeSource, "transpose", Type("Y", like))
	return func(to, from any, rows, cols int) {
		across := Blocks(cols, 32)
		k.Enqueue(Grid{X: Blocks(rows, 32) * across, Threads: 32, ThreadsY: 8}, to, from, rows, cols, across)
	}
}
