package kernel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// How long a thread looks for its next piece of work before it sleeps, in rounds
// of pause. One round takes 10 to 50 ns, so the whole is some hundreds of
// microseconds: longer than what a step does on one thread between two loops, and a
// few times the 100 microseconds that waking a thread takes; short enough to leave
// the processor to the data loader during a gap that lasts.
const spinRounds = 10000

// States of a worker.
const (
	workerIdle   uint32 = iota // looks for work
	workerParked               // sleeps on its channel
	workerCalled               // has work that nobody has begun
	workerBusy                 // works
	workerQuit                 // must end
)

// States of the caller of pool.run.
const (
	callerRunning uint32 = iota
	callerParked
	callerDone
)

// worker is one thread of a pool. The padding keeps the states of two workers
// out of one cache line.
type worker struct {
	state atomic.Uint32
	wake  chan struct{}
	_     [112]byte
}

// pool runs one job at a time on the calling goroutine (worker 0) and on
// threads-1 further goroutines, each locked to its own thread.
type pool struct {
	workers []worker // workers[0] stands for the caller and is not used
	busy    atomic.Bool
	ended   sync.WaitGroup

	// The job: body(worker, lo, hi) over chunks equal parts of [0, n) units of
	// size step, the last part cut at limit.
	body    func(worker, lo, hi int)
	units   int
	step    int
	limit   int
	chunks  int
	pending atomic.Int32
	caller  atomic.Uint32
	done    chan struct{}

	failed atomic.Pointer[workerPanic]
}

// workerPanic is a panic that happened on another thread than the caller's.
type workerPanic struct {
	value any
	stack []byte
}

// Error gives the value and where it came from, which the stack of the caller
// that panics with it does not show.
func (w *workerPanic) Error() string {
	return fmt.Sprintf("kernel: panic on a worker thread: %v\n%s", w.value, w.stack)
}

// Unwrap returns the value if it is an error.
func (w *workerPanic) Unwrap() error {
	err, _ := w.value.(error)
	return err
}

// newPool starts threads-1 workers.
func newPool(threads int) *pool {
	p := &pool{workers: make([]worker, threads), done: make(chan struct{}, 1)}
	for i := 1; i < threads; i++ {
		p.workers[i].wake = make(chan struct{}, 1)
		p.ended.Add(1)
		go p.work(i)
	}
	return p
}

// close ends the workers and waits for them.
func (p *pool) close() {
	for i := 1; i < len(p.workers); i++ {
		p.signal(i, workerQuit)
	}
	p.ended.Wait()
	p.workers = p.workers[:1]
}

// signal hands state to worker i and wakes it if it sleeps.
func (p *pool) signal(i int, state uint32) {
	if p.workers[i].state.Swap(state) == workerParked {
		p.workers[i].wake <- struct{}{}
	}
}

// work is the loop of worker i.
func (p *pool) work(i int) {
	runtime.LockOSThread()
	defer p.ended.Done()
	w := &p.workers[i]
	for {
		switch p.await(w) {
		case workerQuit:
			return
		case workerCalled:
			if !w.state.CompareAndSwap(workerCalled, workerBusy) {
				continue // the caller has done it
			}
			p.chunk(i)
			// Idle before the count goes down: the caller may hand out the next
			// job as soon as it sees zero.
			w.state.Store(workerIdle)
			if p.pending.Add(-1) == 0 && p.caller.Swap(callerDone) == callerParked {
				p.done <- struct{}{}
			}
		}
	}
}

// await returns the state of w once it is workerCalled or workerQuit, or after a
// sleep in whose course the caller has done the work.
func (p *pool) await(w *worker) uint32 {
	for range spinRounds {
		if s := w.state.Load(); s >= workerCalled {
			return s
		}
		pause()
	}
	if w.state.CompareAndSwap(workerIdle, workerParked) {
		<-w.wake
	}
	return w.state.Load()
}

// chunk runs part i of the job and keeps a panic for the caller.
func (p *pool) chunk(i int) {
	defer func() {
		if v := recover(); v != nil {
			p.failed.CompareAndSwap(nil, &workerPanic{v, debug.Stack()})
		}
	}()
	p.body(i, p.bound(i), p.bound(i+1))
}

// bound returns where part i of the job begins.
func (p *pool) bound(i int) int {
	return min(p.units*i/p.chunks*p.step, p.limit)
}

// run calls body(i, lo, hi) for i in [0, chunks), where the ranges are equal
// numbers of whole steps and cover [0, n). chunks must be in [2, threads] and no
// larger than the number of steps in n.
func (p *pool) run(n, step, chunks int, body func(worker, lo, hi int)) {
	if !p.busy.CompareAndSwap(false, true) {
		panic("kernel: an engine was used inside For or by two goroutines at once: use GemmSerial there, or another engine")
	}
	p.body, p.units, p.step, p.limit, p.chunks = body, (n+step-1)/step, step, n, chunks
	p.caller.Store(callerRunning)
	p.pending.Store(int32(chunks - 1))
	for i := 1; i < chunks; i++ {
		p.signal(i, workerCalled)
	}
	p.chunk(0)
	p.help()
	f := p.failed.Swap(nil)
	p.body = nil
	p.busy.Store(false)
	if f != nil {
		panic(f)
	}
}

// help does the parts that their workers have not begun, since waking a thread can
// take longer than the work, and returns when all parts are done. Who does a part
// makes no difference to its result.
func (p *pool) help() {
	for i := 1; i < p.chunks; i++ {
		if !p.workers[i].state.CompareAndSwap(workerCalled, workerIdle) {
			continue
		}
		p.chunk(i)
		if p.pending.Add(-1) == 0 {
			return // no worker will tell
		}
	}
	p.wait()
}

// wait returns when all other parts of the job are done.
func (p *pool) wait() {
	for range spinRounds {
		if p.caller.Load() == callerDone {
			return
		}
		pause()
	}
	if p.caller.CompareAndSwap(callerRunning, callerParked) {
		<-p.done
	}
}
