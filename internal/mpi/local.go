package mpi

import (
	"os"
	"slices"
	"strings"
)

// local is where this process stands among those of its machine.
type local struct {
	rank, ranks int
	threads     int
}

// meet tells all ranks where each runs and finds out who shares this machine, whoever has launched
// them. cpus is how many processors this one may use.
func meet(w *World, cpus int) (local, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "" // those of an unknown machine count as being on one
	}
	all, err := w.GatherBytes([]byte(host + "\n" + affinity()))
	if err != nil {
		return local{}, err
	}
	return neighbours(all, w.rank, cpus), nil
}

// neighbours finds rank's place among the ranks of its machine. Each tells the name of its machine
// and, in a second line, which processors it may use.
func neighbours(all [][]byte, rank, cpus int) local {
	var l local
	same := 0
	host, _, _ := strings.Cut(string(all[rank]), "\n")
	for r, other := range all {
		if h, _, _ := strings.Cut(string(other), "\n"); h != host {
			continue
		}
		if r < rank {
			l.rank++
		}
		l.ranks++
		if slices.Equal(other, all[rank]) {
			same++
		}
	}
	l.threads = max(cpus/same, 1)
	return l
}

// Local returns the place of this process among those of the run on its machine, and their number.
func (w *World) Local() (rank, ranks int) { return w.local.rank, w.local.ranks }

// Threads returns how many threads a rank may compute with so that all ranks of its machine have a
// processor for each: the processors that this process may use, by the number of ranks that may use
// the same ones. A launcher that binds ranks to processors gives each its own.
func (w *World) Threads() int { return w.local.threads }
