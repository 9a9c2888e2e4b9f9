package mpi

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
)

// Options of Connect.
type Options struct {
	// Timeout is how long this process waits for the others in one exchange before it ends all of
	// them. 0 means DefaultTimeout.
	Timeout time.Duration
	// Wire is the form of the gradients, which Begin sums, between processes: "" or "fp32", or
	// "bf16", which halves the bytes: see SetWire.
	Wire string

	round int // bytes; 0 means roundBytes
}

// DefaultTimeout is Options.Timeout of 0.
const DefaultTimeout = 300 * time.Second

// World is all processes of a run. One goroutine at a time may use it, but for Abort.
type World struct {
	thread
	queue chan call
	reply chan answer
	half  atomic.Bool // Begin sums in bfloat16

	local   local
	closing sync.Once
	closed  error
}

var (
	_ parallel.Group   = (*World)(nil)
	_ parallel.Aborter = (*World)(nil)
	_ parallel.Patient = (*World)(nil)
	_ parallel.Wired   = (*World)(nil)
)

// Connect joins the processes that a launcher has started together. It returns nil for a process
// that was started on its own or as the only one, and then loads no library. All processes must
// call it, before they read much memory or start threads that compute.
//
// A launcher whose processes the library does not know, as that of another MPI, is an error, and
// so is a library that is missing.
func Connect(o Options) (*World, error) {
	p := here()
	if p.launcher == nil || p.launcher.Size == 1 {
		return nil, nil
	}
	half, err := wire(o.Wire)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.round == 0 {
		o.round = roundBytes
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("mpi: the timeout must be > 0 (got %v): 0 means %v", o.Timeout, DefaultTimeout)
	}
	w := &World{queue: make(chan call, queued), reply: make(chan answer)}
	w.aborted = make(chan struct{})
	w.timeout.Store(int64(o.Timeout))
	w.half.Store(half)
	w.begin(start, 0)
	go w.watch()
	started := make(chan error)
	go w.run(p, o, started)
	if err := <-started; err != nil {
		return nil, err
	}
	if w.ranks == 1 {
		return nil, w.Close()
	}
	cpus := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cpus + 1) // one for the communication, see the package's documentation
	if w.local, err = meet(w, cpus); err != nil {
		w.Abort(err)
	}
	return w, nil
}

// queued is how many exchanges may be begun without waiting for one.
const queued = 1024

// wire reads Options.Wire.
func wire(name string) (half bool, err error) {
	switch name {
	case "", "fp32":
		return false, nil
	case "bf16":
		return true, nil
	}
	return false, fmt.Errorf("mpi: unknown form of gradients on the wire %q: choose fp32 or bf16", name)
}

// SetWire sets the form in which Begin sums: "fp32", or "bf16", in which each rank's values are
// rounded, added up in float32 and the sum is rounded, so that all ranks have the same bits. Sum
// and SumShare are always in float32. All ranks set the same.
func (w *World) SetWire(name string) error {
	half, err := wire(name)
	if err == nil {
		w.half.Store(half)
	}
	return err
}

// SetTimeout sets Options.Timeout for what is exchanged from now on.
func (w *World) SetTimeout(d time.Duration) {
	if d > 0 {
		w.timeout.Store(int64(d))
	}
}

// Rank implements parallel.Group.
func (w *World) Rank() int { return w.rank }

// Size implements parallel.Group.
func (w *World) Size() int { return w.ranks }

// Library says which library is in use, and its file.
func (w *World) Library() string { return w.api.version + ", " + w.api.file }

// At says what this process is at, as "update" 1200, for the message that ends a run in which one
// process waits for another.
func (w *World) At(what string, number int) {
	w.mu.Lock()
	w.what, w.number = what, number
	w.mu.Unlock()
}

// Close ends the connection. All processes must call it, with nothing left to Wait for. After an
// error of an exchange it does nothing but return it: the other processes would wait. Further
// calls return what the first did. The process then ends by Exit.
func (w *World) Close() error {
	w.closing.Do(func() {
		w.waited.Store(true)
		w.queue <- call{kind: finalize}
		w.closed = (<-w.reply).err
	})
	return w.closed
}

// Abort ends all processes and does not return. It says err, unless it is nil, on the standard
// error. It may be called at any time, by any goroutine.
func (w *World) Abort(err error) {
	if err != nil {
		say(fmt.Sprintf("mpi: rank %d of %d ends all processes: %v", w.rank, w.ranks, err))
	}
	w.abortOnce.Do(func() { close(w.aborted) })
	time.Sleep(abortGrace) // MPI_Abort ends this process
	os.Exit(1)
}
