// Package cuda keeps values on a GPU and runs kernels there: it is the device of name "cuda" of package exec.
//
// Nothing of CUDA is needed to build the program. The driver (libcuda), the run-time compiler (NVRTC) and the matrix
// library (cuBLASLt) are loaded when a device is opened; see Libraries for where they are looked for. Kernels are
// CUDA C++ beside the steps that launch them, compiled for the architecture of the device when they are first
// needed and kept in the user's cache folder.
//
// All work of a device is enqueued on one stream, in the order of the calls, and nothing waits but Sync and the copies
// to the host. One goroutine at a time may use a device.
//
// # Steps of ops
//
// A step for this device is made by a function that On names in op.Op.On. It lies in the folder internal/oncuda of the
// package of the op, with its kernels:
//
//	//go:embed *.cu
//	var files embed.FS
//
//	var layerNormSource = cuda.NewSource(files, "layer norm", "layernorm.cu")
//
//	// LayerNorm is the step of a layer norm.
//	func LayerNorm(eps float32) cuda.Steps {
//		return cuda.On(func(c *exec.DeviceCall) cuda.Step {
//			k := cuda.Load(c, layerNormSource, "layer_norm", cuda.Type("X", c.In[0]), cuda.Type("Y", c.Out))
//			rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
//			return func() {
//				k.Enqueue(cuda.Grid{X: rows, Threads: 256}, c.In[0], c.In[1], c.In[2], c.Out, c.Aux[0], c.Aux[1], cols, eps)
//			}
//		})
//	}
//
// An operand may be float32, bfloat16 or int32, as its Type says: kernels name the types of their operands by macros
// that Load defines. Every source begins with common.cuh. Buffers of inputs may be exchanged between runs, so a step
// reads c.In when it runs. Steps are recorded once and replayed (see Device.Record): what a step does on the host, such
// as choosing a grid, must follow from shapes alone.
package cuda
