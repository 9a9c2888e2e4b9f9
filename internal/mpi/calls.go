package mpi

import (
	"fmt"
	"unsafe"
)

// kind is what an exchange is for. All ranks are in an exchange of one kind.
type kind uint32

const (
	sum kind = iota + 1
	sumHalf
	sumShare
	gather
	gatherBytes
	all
	wait     // for what was begun; no exchange
	start    // the first one: MPI_Init
	finalize // the last one: MPI_Finalize
)

// of says what an exchange of n values, or bytes, is.
func (k kind) of(n int) string {
	switch k {
	case sum:
		return fmt.Sprintf("a sum of %d values", n)
	case sumHalf:
		return fmt.Sprintf("a sum of %d values in bfloat16", n)
	case sumShare:
		return fmt.Sprintf("a sum of shares of %d values", n)
	case gather:
		return fmt.Sprintf("a gathering of values, %d bytes", n)
	case gatherBytes:
		return fmt.Sprintf("a gathering of %d bytes", n)
	case all:
		return "a question to all"
	case start:
		return "the start of all processes"
	default:
		return "the end of all processes"
	}
}

// call is what the goroutine that communicates is asked for.
type call struct {
	kind   kind
	begun  bool // nobody waits for an answer
	ok     bool
	x, own []float32
	give   []byte // what is gathered
	// Where gathered values are appended to: one of them.
	floats []float32
	ints   []int32
}

// answer is what comes of a call.
type answer struct {
	err    error
	ok     bool
	floats []float32
	ints   []int32
	bytes  [][]byte
}

// ask puts c into the queue and waits for the answer.
func (w *World) ask(c call) answer {
	w.waited.Store(true)
	w.queue <- c
	a := <-w.reply
	w.waited.Store(false)
	return a
}

// Sum implements parallel.Group.
func (w *World) Sum(x []float32) error { return w.ask(call{kind: sum, x: x}).err }

// SumShare implements parallel.Group.
func (w *World) SumShare(own, x []float32) error {
	if len(x) != len(own)*w.ranks {
		return fmt.Errorf("mpi: %d values cannot be summed into shares of %d on %d ranks", len(x), len(own), w.ranks)
	}
	return w.ask(call{kind: sumShare, x: x, own: own}).err
}

// Gather implements parallel.Group. The ranks may give different numbers of values.
func (w *World) Gather(dst, x []float32) ([]float32, error) {
	if dst == nil {
		dst = []float32{}
	}
	a := w.ask(call{kind: gather, give: bytesOf(x), floats: dst})
	return a.floats, a.err
}

// GatherInts implements parallel.Group. The ranks may give different numbers of values.
func (w *World) GatherInts(dst, x []int32) ([]int32, error) {
	if dst == nil {
		dst = []int32{}
	}
	a := w.ask(call{kind: gather, give: bytesOf(x), ints: dst})
	return a.ints, a.err
}

// GatherBytes implements parallel.Group.
func (w *World) GatherBytes(x []byte) ([][]byte, error) {
	a := w.ask(call{kind: gatherBytes, give: x})
	return a.bytes, a.err
}

// All implements parallel.Group.
func (w *World) All(ok bool) (bool, error) {
	a := w.ask(call{kind: all, ok: ok})
	return a.ok, a.err
}

// Begin implements parallel.Group. Up to 1024 sums may be begun before one of them is done.
func (w *World) Begin(x []float32) {
	k := sum
	if w.half.Load() {
		k = sumHalf
	}
	w.queue <- call{kind: k, x: x, begun: true}
}

// Wait implements parallel.Group.
func (w *World) Wait() error { return w.ask(call{kind: wait}).err }

// bytesOf is the memory of x.
func bytesOf[T float32 | int32 | uint16](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(T))))
}

// view is the memory of b as values.
func view[T float32 | int32 | uint16](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}
