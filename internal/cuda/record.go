package cuda

import (
	"runtime"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
)

var _ exec.Recorder = (*Device)(nil)

// recording is work of the stream as one CUDA graph.
type recording struct {
	device *Device
	graph  uintptr // executable
	// scratch is the scratch memory that its steps may know, nil: there was none.
	scratch *Memory
}

// Record implements exec.Recorder: what steps enqueue becomes one graph, whose launch costs the host a few microseconds
// however many kernels it has. Nothing runs. Steps must have run once before: then all code is loaded.
func (d *Device) Record(steps func() error) (_ exec.Recording, err error) {
	if err := d.reserve(); err != nil {
		return nil, err
	}
	d.keepChoices()        // a run that is killed goes on with them
	runtime.LockOSThread() // a capture ends on the thread that began it
	defer runtime.UnlockOSThread()
	if err := d.driver.do("cuStreamBeginCapture_v2", d.stream, captureThreadLocal); err != nil {
		return nil, err
	}
	d.recording = true
	err = steps()
	d.recording = false
	graph := new(uintptr)
	if e := d.driver.do("cuStreamEndCapture", d.stream, uintptr(unsafe.Pointer(graph))); e != nil {
		return nil, cause.Join(err, e)
	}
	r := &recording{device: d}
	if err == nil {
		err = d.driver.do("cuGraphInstantiateWithFlags", uintptr(unsafe.Pointer(&r.graph)), *graph, 0)
	}
	if err = cause.Join(err, d.driver.do("cuGraphDestroy", *graph)); err != nil {
		return nil, err
	}
	if r.scratch = d.scratch.memory; r.scratch != nil {
		r.scratch.recordings++
	}
	return r, nil
}

// Launch implements exec.Recording.
func (r *recording) Launch() error {
	return r.device.driver.do("cuGraphLaunch", r.graph, r.device.stream)
}

// Close implements exec.Recording.
func (r *recording) Close() error {
	if r.device.driver.context == 0 {
		return nil // it went with the device
	}
	err := r.device.Sync()
	if e := r.device.driver.do("cuGraphExecDestroy", r.graph); err == nil {
		err = e
	}
	if r.scratch != nil {
		err = cause.Join(err, r.device.release(r.scratch))
		r.scratch = nil
	}
	return err
}
