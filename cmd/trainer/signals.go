package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/process"
)

// faultsAsSignals has what Go itself ends a program for, a panic of a goroutine, no memory, a stack that is too deep,
// end it by the signal SIGABRT, which a shell shows as 134. Go's own exit code for these is 2, that of a bad
// configuration. There is no core dump, unless GOTRACEBACK=crash asks for one.
func faultsAsSignals() {
	if os.Getenv("GOTRACEBACK") != "crash" {
		noCore()
	}
	debug.SetTraceback("crash")
}

// grace is how long a command that has nothing to save may take to end.
const grace = time.Second

// signals returns the signals that ask to stop: Ctrl-C, SIGTERM, and the end of the terminal
// unless nohup or the like has it ignored. A write to a closed pipe becomes an error, see
// outlet.
func signals() <-chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c
}

// watcher answers signals.
type watcher struct {
	stop   func()      // asks the command to save and to end
	reload func() bool // asks for SIGHUP, false where it is like the others
	exit   func(int)   // ends the process
	out    io.Writer   // is told what happens
	grace  time.Duration
	// follows marks a rank other than 0 of several processes, all of which get the signal: rank 0 tells what happens,
	// and ends all where nothing is to be saved.
	follows bool
}

// exitOf ends this process, and those that it is one of: a launcher need not end the others.
func exitOf(g parallel.Group) func(code int) {
	return func(code int) {
		if a, ok := parallel.As[parallel.Aborter](g); ok {
			a.Abort(nil)
		}
		os.Exit(code)
	}
}

// onHangup is what SIGHUP does in a command that reads its files anew for it.
var onHangup atomic.Pointer[func()]

// hangup answers SIGHUP in a command that takes it for something else than the end. Where the
// terminal that it writes to has gone, it is the end.
func hangup(terminal func() bool) func() bool {
	had := terminal()
	return func() bool {
		reload := onHangup.Load()
		if reload == nil || had && !terminal() {
			return false
		}
		(*reload)()
		return true
	}
}

// watch asks the command to save and stop at the first signal and leaves at once at the
// second. A command that has had nothing to save for the grace, whatever it is doing or
// waiting for, is left as well.
func (w watcher) watch(signals <-chan os.Signal) {
	for {
		sig, ok := <-signals
		if !ok {
			return
		}
		if sig != syscall.SIGHUP || w.reload == nil || !w.reload() {
			break
		}
	}
	w.stop()
	w.tell("stopping; what is not saved yet is saved first; a second signal stops at once")
	tick := time.NewTicker(w.grace / 10)
	defer tick.Stop()
	idle := time.Now()
	for {
		select {
		case _, ok := <-signals:
			if ok {
				w.exit(exitInterrupted)
			}
			return
		case now := <-tick.C:
			if process.Held() || w.follows {
				idle = now
			} else if now.Sub(idle) >= w.grace {
				w.tell("interrupted; nothing was left to save")
				w.exit(exitInterrupted)
				return
			}
		}
	}
}

// tell writes a line, on a terminal below the bar. Nobody waits for it: what reads it may
// hang.
func (w watcher) tell(line string) {
	if w.follows {
		return
	}
	text := "trainer: " + line + "\n"
	if terminalOf(w.out) != nil {
		text = "\n" + text
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.WriteString(w.out, text) // one that cannot be written to is not a reason to stay
	}()
	select {
	case <-done:
	case <-time.After(w.grace / 10):
	}
}

// shown is untilCancelled of work that says how far it is, which a bar shows.
func shown[T any](c *cobra.Command, out outputFlags,
	work func(ctx context.Context, progress func(phase string, done, of int)) (T, error)) (T, error) {
	bar := newPhaseBar(c.ErrOrStderr(), out.quiet || out.json)
	defer bar.done()
	return untilCancelled(c.Context(), func() (T, error) {
		return work(c.Context(), func(phase string, done, of int) {
			if c.Context().Err() == nil { // else nobody waits for the rest
				bar.show(phase, done, of)
			}
		})
	})
}

// untilCancelled returns what work returns, or the error of ctx as soon as it is cancelled. Work
// that only reads is then left to end with the process, so that a file list, a vocabulary or a
// slow disk does not keep somebody waiting who has pressed Ctrl-C.
func untilCancelled[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := work()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
