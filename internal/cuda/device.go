package cuda

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
)

// Name is the name of the device in op.Op.On.
const Name = "cuda"

// oldestCUDA is the oldest version of CUDA whose driver and libraries are used.
const oldestCUDA = 12

// Options say which device is opened and how it computes.
type Options struct {
	// Index is the number of the device, as nvidia-smi counts those that CUDA_VISIBLE_DEVICES leaves.
	Index int
	// TF32 permits products of float32 values that are rounded to 10 bits of mantissa.
	TF32 bool
	// Fastest takes, of the algorithms that the matrix library proposes for a large product, the one that was fastest
	// on this machine when the product was first met; otherwise its first proposal. Sums round by the algorithm:
	// another one is other bits.
	Fastest bool
}

// Device is a GPU.
type Device struct {
	failed error // what went wrong first in the step that runs

	driver   *driver
	compiler *library
	matrix   *library
	options  Options
	info     Info
	stream   uintptr
	aside    uintptr // stream of copies beside the work, 0: none so far
	handle   uintptr // of cuBLASLt

	modules   sync.Map // *module by key
	mirrors   []*Mirror
	live      map[*Memory]bool // what was not given back
	scratch   scratch
	workspace *Memory
	allocated int64 // bytes
	most      int64
	marks     marks
	loans     loans
	recording bool
	products  map[productKey]*algorithm
	chosen    choices         // algorithms that were measured
	measured  bool            // some of them since the file was written
	kept      map[any]Pointer // see Keep
}

// Info describes a device.
type Info struct {
	Name            string `json:"name"`
	Major           int    `json:"major"` // compute capability
	Minor           int    `json:"minor"`
	Multiprocessors int    `json:"multiprocessors"`
	Shared          int    `json:"shared_bytes"` // of shared memory that a block may have
	Bytes           int64  `json:"bytes"`        // memory
	Driver          int    `json:"driver"`       // version of CUDA that the driver is for, 1000 major + 10 minor
	NVRTC           string `json:"nvrtc"`
	CuBLASLt        string `json:"cublaslt"`
	Index           int    `json:"index"`
	UUID            string `json:"uuid"` // as nvidia-smi -L shows it behind "GPU-"; no other GPU has it
}

// String is one line about the device.
func (i Info) String() string {
	return fmt.Sprintf("%s (compute capability %d.%d, %d multiprocessors, %.0f GiB, driver for CUDA %d.%d, NVRTC %s, cuBLASLt %s)",
		i.Name, i.Major, i.Minor, i.Multiprocessors, float64(i.Bytes)/(1<<30), i.Driver/1000, i.Driver%1000/10,
		i.NVRTC, i.CuBLASLt)
}

// Open opens a device. The error says what is missing.
func Open(o Options) (_ *Device, err error) {
	d := &Device{options: o, live: map[*Memory]bool{}, products: map[productKey]*algorithm{}}
	defer func() {
		if err != nil {
			err = cause.Join(err, d.Close())
		}
	}()
	l, err := driverPart.open()
	if err != nil {
		return nil, err
	}
	d.driver = &driver{library: l}
	if err := d.start(); err != nil {
		return nil, err
	}
	cuda := d.info.Driver / 1000
	if d.compiler, err = compilerPart.upTo(cuda).open(); err != nil {
		return nil, err
	}
	if d.matrix, err = matrixPart.upTo(cuda).open(); err != nil {
		return nil, err
	}
	major, minor := new(int32), new(int32)
	if s := d.compiler.call("nvrtcVersion", uintptr(unsafe.Pointer(major)), uintptr(unsafe.Pointer(minor))); s != 0 {
		return nil, d.compilerError("nvrtcVersion", s, "")
	}
	d.info.NVRTC = fmt.Sprintf("%d.%d", *major, *minor)
	return d, d.startMatrix()
}

// Count returns the number of devices that this process sees: CUDA_VISIBLE_DEVICES hides some.
func Count() (int, error) {
	l, err := driverPart.open()
	if err != nil {
		return 0, err
	}
	d := &driver{library: l}
	return d.count()
}

// count starts the driver and returns the number of devices.
func (d *driver) count() (int, error) {
	if err := d.do("cuInit", 0); err != nil {
		return 0, fmt.Errorf("%w: nvidia-smi shows whether a GPU and its driver are there, and CUDA_VISIBLE_DEVICES may hide it", err)
	}
	n := new(int32)
	err := d.do("cuDeviceGetCount", uintptr(unsafe.Pointer(n)))
	return int(*n), err
}

// start makes a context on the device.
func (d *Device) start() error {
	n, err := d.driver.count()
	if err != nil {
		return err
	}
	if d.options.Index < 0 || d.options.Index >= n {
		return fmt.Errorf("cuda: there is no device %d: %d are visible (CUDA_VISIBLE_DEVICES)", d.options.Index, n)
	}
	device := new(int32)
	if err := d.driver.do("cuDeviceGet", uintptr(unsafe.Pointer(device)), uintptr(d.options.Index)); err != nil {
		return err
	}
	name, uuid := make([]byte, 256), make([]byte, 16)
	version, bytes := new(int32), new(uint64)
	err = cause.Join(
		d.driver.do("cuDeviceGetName", uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(*device)),
		d.driver.do("cuDeviceGetUuid_v2", uintptr(unsafe.Pointer(&uuid[0])), uintptr(*device)),
		d.driver.do("cuDriverGetVersion", uintptr(unsafe.Pointer(version))),
		d.driver.do("cuDeviceTotalMem_v2", uintptr(unsafe.Pointer(bytes)), uintptr(*device)),
	)
	d.info.Name, _, _ = strings.Cut(string(name), "\x00")
	d.info.Index = d.options.Index
	d.info.UUID = fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	d.info.Driver, d.info.Bytes = int(*version), int64(*bytes)
	for _, a := range []struct {
		which int
		to    *int
	}{{attributeMajor, &d.info.Major}, {attributeMinor, &d.info.Minor},
		{attributeMultiprocessors, &d.info.Multiprocessors}, {attributeSharedOptIn, &d.info.Shared}} {
		var bad error
		*a.to, bad = d.driver.attribute(uintptr(*device), a.which)
		err = cause.Join(err, bad)
	}
	if err != nil {
		return err
	}
	if d.info.Driver < 1000*oldestCUDA {
		return fmt.Errorf("cuda: the driver of %s is for CUDA %d.%d: a driver for CUDA %d or newer is needed",
			d.info.Name, d.info.Driver/1000, d.info.Driver%1000/10, oldestCUDA)
	}
	if d.info.Major < 8 {
		return fmt.Errorf("cuda: %s has compute capability %d.%d: 8.0 (Ampere) or newer is needed", d.info.Name,
			d.info.Major, d.info.Minor)
	}
	context := new(uintptr)
	if err := d.driver.do("cuDevicePrimaryCtxRetain", uintptr(unsafe.Pointer(context)), uintptr(*device)); err != nil {
		return err
	}
	d.driver.context = *context
	return d.driver.do("cuStreamCreate", uintptr(unsafe.Pointer(&d.stream)), streamNonBlocking)
}

// Info returns what the device is.
func (d *Device) Info() Info { return d.info }

// Name implements exec.Device.
func (d *Device) Name() string { return Name }

// Describe is what a run computes with, in words.
func (d *Device) Describe() string { return "cuda: " + d.info.String() }

// Sync waits for all work that was enqueued and returns what went wrong with it.
func (d *Device) Sync() error { return d.driver.do("cuStreamSynchronize", d.stream) }

// Allocated returns the bytes of the device's memory that are in use by this program, and the most that were.
func (d *Device) Allocated() (now, most int64) { return d.allocated, d.most }

// ResetMost forgets the most that was in use.
func (d *Device) ResetMost() { d.most = d.allocated }

// Free returns the bytes of the device's memory that no process has taken.
func (d *Device) Free() (int64, error) {
	free, total := new(uint64), new(uint64)
	err := d.driver.do("cuMemGetInfo_v2", uintptr(unsafe.Pointer(free)), uintptr(unsafe.Pointer(total)))
	return int64(*free), err
}

// Close gives everything back. Machines on the device are closed before.
func (d *Device) Close() error {
	if d.driver == nil || d.driver.context == 0 {
		return nil
	}
	d.keepChoices()
	errs := []error{d.Sync(), d.closeMarks(), d.closeLoans()}
	for m := range d.live {
		errs = append(errs, m.Free())
	}
	d.mirrors, d.kept = nil, nil
	d.modules.Range(func(_, m any) bool {
		if m := m.(*module); m.handle != 0 {
			errs = append(errs, d.driver.do("cuModuleUnload", m.handle))
		}
		return true
	})
	for _, x := range d.products {
		d.forget(x)
	}
	d.products = map[productKey]*algorithm{}
	if d.handle != 0 {
		errs = append(errs, d.matrixError("cublasLtDestroy", d.matrix.call("cublasLtDestroy", d.handle)))
	}
	errs = append(errs, d.driver.do("cuStreamDestroy_v2", d.stream))
	if d.aside != 0 {
		errs = append(errs, d.driver.do("cuStreamDestroy_v2", d.aside))
	}
	d.driver.context = 0 // the context of the process stays: its release would take the time of a start
	return cause.Join(errs...)
}
