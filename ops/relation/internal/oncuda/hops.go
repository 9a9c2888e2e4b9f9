package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var hopsSource = cuda.NewSource(files, "hops", "hops.cu")

// Hops is the step of the divergence of walks of up to count hops: the same matrices as on the host, in scratch.
func Hops(temperature, target float32, count int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.In[0].Shape[0]
		size := (4*int64(n)*int64(n) + 255) / 256 * 256 // of a matrix
		first := (8*int64(n)*int64(count) + 255) / 256 * 256
		losses := cuda.Scratch(c, first+int64(2*count+3)*size)
		matrix := func(i int) cuda.Pointer { return losses + cuda.Pointer(first+int64(i)*size) }
		power := func(l int) cuda.Pointer { return matrix(l - 1) }        // P^l
		grad := func(l int) cuda.Pointer { return matrix(count + l - 1) } // G_l, then D_l
		fixed, walks := matrix(2*count), [2]cuda.Pointer{matrix(2*count + 1), matrix(2*count + 2)}

		kernel := func(name string) *cuda.Kernel { return cuda.Load(c, hopsSource, name) }
		softmax, compare, mean, finish := kernel("distributions"), kernel("compare_rows"), kernel("mean_loss"),
			kernel("softmax_gradient")
		rows := func(blocks int) cuda.Grid { return cuda.Grid{X: blocks, Threads: 256} }
		multiply := func(out, a, b cuda.Pointer, transA, transB bool, beta float32) {
			p := cuda.Product{TransA: transA, TransB: transB, M: n, N: n, K: n, LDA: n, LDB: n, LDC: n, Beta: beta}
			d := cuda.Of(c)
			d.Note(d.Multiply(p, a, b, out, 0))
		}
		forward := func() {
			softmax.Enqueue(rows(2*n), power(1), fixed, c.In[0], c.In[1], n, 1/temperature, 1/target)
			walk := fixed
			for l := 1; l <= count; l++ {
				if l > 1 {
					next := walks[l%2]
					multiply(power(l), power(l-1), power(1), false, false, 0)
					multiply(next, walk, fixed, false, false, 0)
					walk = next
				}
				compare.Enqueue(rows(n), losses+cuda.Pointer(8*n*(l-1)), grad(l), walk, power(l), n, 1/float32(n*count))
			}
			mean.Enqueue(rows(1), c.Out, losses, n*count)
		}
		return func() {
			forward()
			dp := cuda.At(c.Aux[0])
			for l := count; l > 1; l-- {
				beta := float32(1)
				if l == count {
					beta = 0
				}
				multiply(dp, power(l-1), grad(l), true, false, beta)
				multiply(grad(l-1), grad(l), power(1), false, true, 1)
			}
			finish.Enqueue(rows(n), c.Aux[0], power(1), grad(1), n, count > 1, temperature)
		}
	})
}
