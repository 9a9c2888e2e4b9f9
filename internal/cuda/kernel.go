package cuda

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/geoalign/geoalign/internal/exec"
)

// Kernel is a function of a module on a device.
type Kernel struct {
	device *Device
	module *module
	name   string
	handle uintptr
	shared int // dynamic shared memory that it may have
}

// Grid says how many blocks of how many threads run a kernel, 0 stands for 1.
type Grid struct {
	X, Y, Z  int
	Threads  int
	ThreadsY int
	Shared   int // bytes of dynamic shared memory
}

// Double is a parameter of type double. A float64 is none: most would be meant for a float.
type Double float64

// Blocks returns the number of pieces of size n that count is cut into.
func Blocks(count, n int) int { return (count + n - 1) / n }

// Load returns a kernel of a source for the device that the result of c lies on, compiled with macros that Type, Is and
// Value define. The compiler works beside the caller: what it finds wrong is an error of Launch.
func Load(c *exec.DeviceCall, s *Source, name string, macros ...Macro) *Kernel {
	return Of(c).Kernel(s, name, macros...)
}

// Kernel is Load for a device.
func (d *Device) Kernel(s *Source, name string, macros ...Macro) *Kernel {
	return &Kernel{device: d, module: d.module(s, macros), name: name}
}

// ready waits for the compiler and finds the function.
func (k *Kernel) ready() error {
	if k.handle != 0 {
		return nil
	}
	m, err := k.module.load(k.device)
	if err != nil {
		return err
	}
	name := append([]byte(k.name), 0)
	if err := k.device.driver.do("cuModuleGetFunction", uintptr(unsafe.Pointer(&k.handle)), m,
		uintptr(unsafe.Pointer(&name[0]))); err != nil {
		return fmt.Errorf("kernel %s of %s: %w", k.name, k.module.source.Name, err)
	}
	return nil
}

// Launch enqueues the kernel. args are its parameters in order: exec.Operand, Pointer, int (as int), int32, uint32,
// uint64, int64, bool (as bool or int), float32, Double; a nil stands for the null pointer, and an operand without a
// buffer too.
func (k *Kernel) Launch(g Grid, args ...any) error {
	if err := k.ready(); err != nil {
		return err
	}
	if g.Shared > 48<<10 && g.Shared > k.shared {
		if err := k.device.driver.do("cuFuncSetAttribute", k.handle, maxDynamicShared, uintptr(g.Shared)); err != nil {
			return fmt.Errorf("kernel %s with %d bytes of shared memory: %w", k.name, g.Shared, err)
		}
		k.shared = g.Shared
	}
	values := make([]uint64, len(args)+1)
	pointers := make([]unsafe.Pointer, len(args)+1) // no numbers, which would leave the values on a stack that moves
	for i, a := range args {
		v, err := k.device.parameter(a)
		if err != nil {
			return fmt.Errorf("kernel %s: parameter %d: %w", k.name, i, err)
		}
		values[i] = v
		pointers[i] = unsafe.Pointer(&values[i])
	}
	dim := func(n int) uintptr { return uintptr(max(n, 1)) }
	err := k.device.driver.do("cuLaunchKernel", k.handle, dim(g.X), dim(g.Y), dim(g.Z), dim(g.Threads),
		dim(g.ThreadsY), 1,
		uintptr(g.Shared), k.device.stream, uintptr(unsafe.Pointer(&pointers[0])), 0)
	runtime.KeepAlive(pointers)
	if err != nil {
		return fmt.Errorf("kernel %s with a grid of %d x %d x %d blocks of %d x %d threads: %w", k.name, dim(g.X),
			dim(g.Y), dim(g.Z), dim(g.Threads), dim(g.ThreadsY), err)
	}
	return nil
}

// parameter returns the bits of a kernel's parameter.
func (d *Device) parameter(a any) (uint64, error) {
	switch v := a.(type) {
	case nil:
		return 0, nil
	case exec.Operand:
		if v.Buffer == nil {
			return 0, nil
		}
		return uint64(v.Buffer.(*Buffer).at), nil
	case Pointer:
		at, err := d.address(v)
		return uint64(at), err
	case int:
		if int(int32(v)) != v {
			return 0, fmt.Errorf("%d does not fit into an int of the device: give it as int64", v)
		}
		return uint64(uint32(int32(v))), nil
	case int32:
		return uint64(uint32(v)), nil
	case uint32:
		return uint64(v), nil
	case int64:
		return uint64(v), nil
	case uint64:
		return v, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case float32:
		return uint64(floatBits(v)), nil
	case Double:
		return math.Float64bits(float64(v)), nil
	}
	return 0, fmt.Errorf("cuda: a parameter of a kernel cannot be a %T", a)
}
