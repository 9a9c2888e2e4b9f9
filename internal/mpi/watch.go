package mpi

import (
	"fmt"
	"os"
	"time"
)

// abortGrace is how long a process that calls MPI_Abort is left to end by it.
const abortGrace = 3 * time.Second

// say writes the last words of this process, and leaves the launcher the time to pass them on: it
// may drop what it has not read when it ends the processes.
func say(words string) {
	fmt.Fprintln(os.Stderr, words)
	time.Sleep(300 * time.Millisecond)
}

// watch ends this process when the goroutine that communicates does not do so itself: its thread
// is inside of a function of the library that does not return. The launcher ends the others when
// one of them ends with an error.
func (w *World) watch() {
	tick := time.NewTicker(min(time.Second, time.Duration(w.timeout.Load())/4))
	defer tick.Stop()
	for range tick.C {
		since := w.since.Load()
		if since != 0 && clock()-since > w.timeout.Load()+int64(abortGrace) {
			say(w.late(""))
			os.Exit(1)
		}
	}
}
