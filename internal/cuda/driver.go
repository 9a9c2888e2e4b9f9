package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// driverFunctions are those of the driver that are called (CUDA driver API, cuda.h).
var driverFunctions = []string{
	"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
	"cuDeviceTotalMem_v2", "cuDeviceGetUuid_v2",
	"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuCtxSynchronize",
	"cuMemGetInfo_v2",
	"cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2", "cuMemHostUnregister",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuMemsetD32Async",
	"cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamWaitEvent", "cuStreamBeginCapture_v2",
	"cuStreamEndCapture",
	"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy", "cuGraphGetNodes",
	"cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuFuncSetAttribute", "cuLaunchKernel",
	"cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime", "cuEventDestroy_v2",
	"cuGetErrorName", "cuGetErrorString",
}

// Numbers of cuda.h.
const (
	attributeMultiprocessors = 16
	attributeMajor           = 75
	attributeMinor           = 76
	attributeSharedOptIn     = 97
	streamNonBlocking        = 1
	captureThreadLocal       = 1
	eventWithoutTime         = 2
	maxDynamicShared         = 8
	statusOutOfMemory        = 2
)

// Error is what a library of CUDA answered.
type Error struct {
	Call   string // the function
	Status int
	Text   string // what the library says of the status
}

// Error says what was answered and, where that is known, what to do.
func (e *Error) Error() string {
	s := fmt.Sprintf("cuda: %s: %s (%d)", e.Call, e.Text, e.Status)
	switch {
	case e.Status == statusOutOfMemory:
		s += ": another process may hold memory of the device (nvidia-smi shows them); train.batch_size, compute.recompute and queue.size change what is needed"
	case e.Status == 35 || e.Status == 222 || e.Status == 803:
		s += ": the driver is older than the libraries: install a newer driver, or libraries of its version of CUDA"
	case e.Lost():
		s += ": the device is lost to this process: what was saved before is whole; go on with --resume auto"
	}
	return s
}

// lostStatuses are those after which every call fails (cuda.h): the device has gone, is defective or has ended what ran
// on it.
var lostStatuses = []int{46, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719}

// Lost says that nothing of this process runs on the device any more, and that nothing can be read from it.
func (e *Error) Lost() bool { return slices.Contains(lostStatuses, e.Status) }

// driver calls the driver with a context.
type driver struct {
	*library
	context uintptr
	lost    error // the first error that says so: all later calls would fail alike
}

// do calls a function of the driver in the device's context.
//
//go:uintptrescapes
func (d *driver) do(name string, args ...uintptr) error {
	if d.lost != nil {
		return d.lost
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if d.context != 0 {
		if err := d.err("cuCtxSetCurrent", d.call("cuCtxSetCurrent", d.context)); err != nil {
			return err
		}
	}
	return d.err(name, d.call(name, args...))
}

// err makes an error of a status.
func (d *driver) err(name string, status uintptr) error {
	if status == 0 {
		return nil
	}
	e := &Error{Call: name, Status: int(status), Text: "unknown error"}
	text := new(unsafe.Pointer)
	for _, f := range []string{"cuGetErrorString", "cuGetErrorName"} {
		if d.call(f, status, uintptr(unsafe.Pointer(text))) == 0 && *text != nil {
			e.Text = dynlib.String(*text)
			break
		}
	}
	if e.Lost() && d.lost == nil {
		d.lost = e
	}
	return e
}

// attribute returns a property of a device.
func (d *driver) attribute(device uintptr, which int) (int, error) {
	v := new(int32)
	err := d.do("cuDeviceGetAttribute", uintptr(unsafe.Pointer(v)), uintptr(which), device)
	return int(*v), err
}
