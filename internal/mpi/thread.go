package mpi

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// thread is what the goroutine that communicates works with. Fields below mu are for others too.
type thread struct {
	api         *api
	rank, ranks int
	timeout     atomic.Int64 // in nanoseconds
	buffers
	exchanges uint64 // so far
	failed    error  // of the first exchange that failed: nothing goes on after it
	begunErr  error  // of sums since the last wait

	mu     sync.Mutex
	what   string // what the caller is at
	number int

	waited    atomic.Bool   // the caller waits
	since     atomic.Int64  // when the exchange began, in nanoseconds; 0 between exchanges
	doing     atomic.Uint32 // its kind
	times     times
	length    atomic.Int64 // how many values, or bytes
	aborted   chan struct{}
	abortOnce sync.Once
}

// run loads the library, initialises it and answers calls until the last.
func (w *World) run(p place, o Options, started chan<- error) {
	// Never unlocked: MPI's thread ends with the goroutine.
	runtime.LockOSThread()
	err := quietly(func() error { return w.connect(p) })
	if err == nil {
		err = w.known(p.launcher)
	}
	if err == nil {
		err = w.buffers.make(w.api, w.ranks, o.round)
	}
	w.end()
	started <- err
	if err != nil {
		return
	}
	precise()
	for {
		select {
		case c := <-w.queue:
			a := w.answer(c)
			if c.begun {
				if w.begunErr == nil {
					w.begunErr = a.err
				}
				continue
			}
			w.reply <- a
			if c.kind == finalize && w.failed == nil {
				return
			}
		case <-w.aborted:
			w.api.abort(1)
		}
	}
}

// connect loads and initialises the library.
func (t *thread) connect(p place) (err error) {
	if err := prepare(); err != nil {
		return fmt.Errorf("mpi: the environment of the library cannot be set: %w", err)
	}
	if t.api, err = p.find(); err != nil {
		return fmt.Errorf("%w. This process was started by %s as one of several: %s=off makes it one on its own", err,
			p.launcher.Name, Variable)
	}
	if err := t.api.Share(); err != nil {
		return fmt.Errorf("mpi: %s cannot be loaded: %w", t.api.file, err)
	}
	connected.Store(true)
	if err := t.api.init(); err != nil {
		return err
	}
	if t.rank, err = t.api.rank(); err != nil {
		return err
	}
	t.ranks, err = t.api.size()
	return err
}

// known compares what the library says with what the launcher says.
func (t *thread) known(l *Launcher) error {
	if t.ranks > 1 || l.Size <= 1 {
		return nil
	}
	_ = t.api.finalize() // the error below is what the user needs
	return fmt.Errorf("mpi: %s has started %d processes, but %s (%s) knows only of this one: it does not go with that launcher. "+
		"Use the mpirun of this library (srun: --mpi=pmix or --mpi=pmi2), or name the launcher's library with %s",
		l.Name, l.Size, t.api.version, t.api.file, Variable)
}

// answer does what c asks for.
func (t *thread) answer(c call) (a answer) {
	switch c.kind {
	case wait:
		a.err, t.begunErr = t.begunErr, nil
		return a
	case finalize:
		if t.failed != nil {
			return answer{err: t.failed}
		}
		t.begin(finalize, 0)
		defer t.end()
		return answer{err: t.api.finalize()}
	}
	if t.failed != nil {
		return answer{err: t.failed, floats: c.floats, ints: c.ints}
	}
	n := len(c.x)
	if n == 0 {
		n = len(c.give)
	}
	t.begin(c.kind, n)
	defer t.times.add(clock(), c.bytes())
	defer t.end()
	a.floats, a.ints = c.floats, c.ints
	if a.ok, a.err = t.agree(c, n); a.err == nil {
		switch c.kind {
		case sum:
			a.err = t.sum(c.x)
		case sumHalf:
			a.err = t.sumHalf(c.x)
		case sumShare:
			a.err = t.sumShare(c.own, c.x)
		case gather, gatherBytes:
			a.err = t.gather(&c, &a)
		}
	}
	t.failed = a.err
	return a
}

// begin notes what is waited for from now on.
func (t *thread) begin(k kind, n int) {
	t.doing.Store(uint32(k))
	t.length.Store(int64(n))
	t.since.Store(clock())
}

func (t *thread) end() { t.since.Store(0) }

// loaded is when the program began, for clock.
var loaded = time.Now()

// clock returns the nanoseconds since the program began, at least 1, whatever happens to the clock
// on the wall.
func clock() int64 { return int64(time.Since(loaded)) + 1 }

// pause is how long the thread sleeps between two looks at an exchange, and patience for how long
// it looks without sleeping while the caller waits.
const (
	pause    = 20 * time.Microsecond
	patience = 2 * time.Millisecond
)

// await waits for what was begun. It lets the library work on it, as the documentation of the
// package says.
func (t *thread) await(r *request) error {
	var began int64
	for looks := 0; ; looks++ {
		done, err := t.api.test(r)
		if err != nil {
			return err
		}
		if done {
			t.since.Store(clock())
			return nil
		}
		if looks%16 != 15 {
			continue
		}
		select {
		case <-t.aborted:
			t.api.abort(1)
		default:
		}
		now := clock()
		if began == 0 {
			began = now
		}
		if now-t.since.Load() > t.timeout.Load() {
			say(t.late(t.silent()))
			t.api.abort(1)
		}
		if t.waited.Load() && now-began < int64(patience) {
			yield()
		} else {
			sleep(pause)
			looks = 14 // one look after a pause
		}
	}
}

// late says that the others are late, and of which ranks nothing has come.
func (t *thread) late(silent string) string {
	t.mu.Lock()
	at := ""
	if t.what != "" {
		at = fmt.Sprintf(" at %s %d", t.what, t.number)
	}
	t.mu.Unlock()
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	what := kind(t.doing.Load()).of(int(t.length.Load()))
	return fmt.Sprintf("mpi: rank %d of %d on %s has waited %v for the others%s, in %s%s. "+
		"One of them hangs, or is slower than that: a longer time is set by parallel.timeout_seconds. All processes are ended.",
		t.rank, t.ranks, host, time.Duration(t.timeout.Load()), at, what, silent)
}
