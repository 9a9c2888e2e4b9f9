package library

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// Values of oneDNN's enumerations (dnnl_types.h, dnnl_common_types.h), the same in
// versions 2 and 3 unless a name says otherwise.
const (
	dnnlCPU            = 1
	dnnlInOrder        = 1
	dnnlBF16           = 2
	dnnlF32            = 3
	dnnlUserScratchpad = 1
	dnnlQueryName      = 8   // dnnl_query_impl_info_str
	dnnlQueryScratch   = 136 // dnnl_query_scratchpad_md
	dnnlLinear3        = 0x26
	dnnlSource         = 1
	dnnlDestination    = 17
	dnnlWeights        = 33
	dnnlBias           = 41
	dnnlScratchpad     = 80
)

// Descriptors of version 2 are plain structures, of 696 and 2,800 bytes in 2.6:
// the room leaves space for others.
const (
	memoryDescRoom = 2048
	matmulDescRoom = 8192
)

const floatOne = 0x3f800000

func floatBits(x float32) uint32 { return math.Float32bits(x) }

// dnnlMatmul drives oneDNN's matmul primitives through its C API, whose version 2
// fills descriptors that the caller owns and whose version 3 creates them.
//
// Working memory is the caller's (scratchpad mode "user"): that of the library
// belongs to the thread that created the primitive.
type dnnlMatmul struct {
	major  int32
	fn     map[string]uintptr
	float  dnnlFloatFuncs
	engine uintptr
	// Called for each product.
	setHandle, run uintptr
}

var dnnlFunctions = []string{
	"dnnl_engine_create", "dnnl_stream_create",
	"dnnl_memory_create", "dnnl_memory_destroy", "dnnl_memory_set_data_handle", "dnnl_memory_desc_get_size",
	"dnnl_primitive_attr_create", "dnnl_primitive_attr_destroy", "dnnl_primitive_attr_set_scratchpad_mode",
	"dnnl_primitive_attr_set_post_ops",
	"dnnl_post_ops_create", "dnnl_post_ops_destroy", "dnnl_post_ops_append_sum", "dnnl_post_ops_append_eltwise",
	"dnnl_primitive_desc_query", "dnnl_primitive_desc_query_md", "dnnl_primitive_desc_destroy",
	"dnnl_primitive_create", "dnnl_primitive_destroy", "dnnl_primitive_execute",
}

var dnnlFunctionsOf = map[int32][]string{
	2: {"dnnl_memory_desc_init_by_strides", "dnnl_matmul_desc_init", "dnnl_primitive_desc_create",
		"dnnl_primitive_attr_set_output_scales"},
	3: {"dnnl_memory_desc_create_with_strides", "dnnl_memory_desc_clone", "dnnl_memory_desc_destroy",
		"dnnl_matmul_primitive_desc_create"},
}

// newDNNLMatmul finds the functions in lib and creates the engine, which lives
// as long as the program.
func newDNNLMatmul(lib *dynlib.Library, major int32) (*dnnlMatmul, error) {
	d := &dnnlMatmul{major: major, fn: map[string]uintptr{}}
	for _, names := range [][]string{dnnlFunctions, dnnlFunctionsOf[major]} {
		for _, name := range names {
			f, err := lib.Func(name)
			if err != nil {
				return nil, err
			}
			d.fn[name] = f
		}
	}
	d.float = newDNNLFloatFuncs(d.fn, major)
	d.setHandle, d.run = d.fn["dnnl_memory_set_data_handle"], d.fn["dnnl_primitive_execute"]
	engine := heap[uintptr]()
	if err := d.call("dnnl_engine_create", address(engine), dnnlCPU, 0); err != nil {
		return nil, err
	}
	d.engine = *engine
	return d, nil
}

// heap returns a zero value that is not on a stack, which may move during a call.
//
//go:noinline
func heap[T any]() *T { return new(T) }

// address is where a value of heap is, for a call that returns before the caller
// lets go of it.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// call calls a function that returns a status. Pointers among the arguments must
// be kept alive by the caller.
func (d *dnnlMatmul) call(name string, args ...uintptr) error {
	if status := int32(dynlib.Call(d.fn[name], args...)); status != 0 {
		return fmt.Errorf("%s: status %d", name, status)
	}
	return nil
}

// release calls a function that destroys an object; there is nothing to do about
// a failure.
func (d *dnnlMatmul) release(name string, object uintptr) {
	if object != 0 {
		_ = d.call(name, object)
	}
}
