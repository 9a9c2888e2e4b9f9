//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkExchanges measures on 2 ranks of this machine, under each mpirun, how long a question to all takes and how
// fast sums are, begun and waited for. For other numbers of ranks and for several machines
// build the test program and start it by hand:
//
//	go test -c -o mpi.test ./internal/mpi && GEOALIGN_MPI_SCENARIO=speed mpirun -n 8 ./mpi.test
func BenchmarkExchanges(b *testing.B) {
	for _, mpirun := range mpiruns(b) {
		o := ranks(b, mpirun, 2, "speed")
		if o.err != nil {
			b.Fatalf("%s: %v: %s", mpirun, o.err, o.output)
		}
		fmt.Printf("%s:\n%s", mpirun, o.output)
	}
}

func init() { scenarios["speed"] = speed }

// speed prints the median of some repetitions, on rank 0. GB/s are of the vector in float32.
func speed(w *World) error {
	show := func(format string, args ...any) {
		if w.rank == 0 {
			fmt.Printf(format, args...)
		}
	}
	show("%s, %d ranks\n", w.Library(), w.ranks)
	const few, many = 9, 501
	took, err := median(many, func() error {
		_, err := w.All(true)
		return err
	})
	show("all           %10.1f us\n", took*1e6)
	for _, mb := range []int{1, 16, 56, 64} {
		x := make([]float32, mb*250000)
		for _, wire := range []string{"fp32", "bf16"} {
			if err := w.SetWire(wire); err != nil {
				return err
			}
			took, err = median(few, func() error {
				w.Begin(x)
				return w.Wait()
			})
			if err != nil {
				return err
			}
			show("sum %2d MB %s %10.2f ms %6.2f GB/s\n", mb, wire, took*1e3, float64(mb)/1e3/took)
		}
	}
	return err
}

// median is how long f takes, in seconds.
func median(n int, f func() error) (float64, error) {
	var times []float64
	for range n {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start).Seconds())
	}
	return middle(times), nil
}

// middle is the median of x, which it sorts.
func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
