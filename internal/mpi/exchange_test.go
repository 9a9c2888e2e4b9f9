//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// TestExchanges: every exchange is what its plain definition says.
func TestExchanges(t *testing.T) {
	everywhere(t, func(t *testing.T, mpirun string, n int) {
		if o := ranks(t, mpirun, n, "exchanges"); o.err != nil {
			t.Errorf("%v:\n%s", o.err, o.output)
		}
	})
}

func init() { scenarios["exchanges"] = exchanges }

// smallRound is how many bytes a round takes in this test, so that vectors of many rounds are short.
const smallRound = 32 << 10

// lengths are odd, empty, shorter than the number of ranks, longer than a round and than two.
var lengths = []int{0, 1, 2, 3, 7, 1000, 4097, smallRound / 4, smallRound/4 + 1, 2*smallRound/4 + 5, 5*smallRound/4 - 3}

// values are what a rank gives in an exchange: everywhere as far from others as float32 can tell,
// so that another order of the sum has other bits.
func values(rank, n, seed int) []float32 {
	x := make([]float32, n)
	s := uint32(rank*7919 + seed*104729 + 1)
	for i := range x {
		s = s*1664525 + 1013904223 // Numerical Recipes, section 7.1
		x[i] = float32(int32(s)) / (1 << 31) * float32(math.Exp2(float64(s>>8%9)))
	}
	return x
}

// total is the sum of what all ranks give, in their order.
func total(ranks, n, seed int) []float32 {
	sum := values(0, n, seed)
	for r := 1; r < ranks; r++ {
		for i, v := range values(r, n, seed) {
			sum[i] += v
		}
	}
	return sum
}

// totalHalf is total with everything rounded to bfloat16 that is on its way.
func totalHalf(ranks, n, seed int) []float32 {
	sum := values(0, n, seed)
	vector.RoundBF16(sum, sum)
	for r := 1; r < ranks; r++ {
		x := values(r, n, seed)
		vector.RoundBF16(x, x)
		for i, v := range x {
			sum[i] += v
		}
	}
	vector.RoundBF16(sum, sum)
	return sum
}

// same compares bits.
func same(what string, got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return fmt.Errorf("%s of %d: element %d is %v, want %v", what, len(want), i, got[i], want[i])
		}
	}
	return nil
}

func exchanges(w *World) error {
	for seed, n := range lengths {
		x := values(w.rank, n, seed)
		if err := w.Sum(x); err != nil {
			return err
		}
		if err := same("sum", x, total(w.ranks, n, seed)); err != nil {
			return err
		}
		if err := gathers(w, n, seed); err != nil {
			return err
		}
	}
	if err := begun(w); err != nil {
		return err
	}
	if err := counted(w); err != nil {
		return err
	}
	return agreed(w)
}

// counted checks Times: a sum of 10 values, a begun one that travels in half of the bytes, and a question.
func counted(w *World) error {
	before := w.Times()
	x := make([]float32, 10)
	if err := w.SetWire("bf16"); err != nil {
		return err
	}
	if err := w.Sum(x); err != nil {
		return err
	}
	w.Begin(x)
	if err := w.Wait(); err != nil {
		return err
	}
	if _, err := w.All(true); err != nil {
		return err
	}
	got := w.Times()
	if n, b, d := got.Exchanges-before.Exchanges, got.Bytes-before.Bytes, got.Exchange-before.Exchange; n != 3 ||
		b != 40+20 || d <= 0 {
		return fmt.Errorf("counted %d exchanges of %d bytes in %v, want 3 of 60", n, b, d)
	}
	return w.SetWire("fp32")
}

// gathers checks the exchanges whose results depend on the rank.
func gathers(w *World, n, seed int) error {
	var everything []float32
	for r := range w.ranks {
		everything = append(everything, values(r, n, seed)...)
	}
	got, err := w.Gather([]float32{7}, values(w.rank, n, seed))
	if err != nil {
		return err
	}
	if err := same("gathered", got, append([]float32{7}, everything...)); err != nil {
		return err
	}
	// The numbers may differ between ranks.
	own := make([]int32, n+w.rank*3)
	for i := range own {
		own[i] = int32(i * (w.rank + 1))
	}
	ints, err := w.GatherInts([]int32{9}, own)
	if err != nil {
		return err
	}
	want := []int32{9}
	for r := range w.ranks {
		for i := range n + r*3 {
			want = append(want, int32(i*(r+1)))
		}
	}
	if !slices.Equal(ints, want) {
		return fmt.Errorf("gathered integers of %d and more differ", n)
	}
	whole := values(w.rank, n*w.ranks, seed)
	share := make([]float32, n)
	if err := w.SumShare(share, whole); err != nil {
		return err
	}
	return same("sum of shares", share, total(w.ranks, n*w.ranks, seed)[n*w.rank:][:n])
}

// begun checks sums that are begun, in both forms on the wire and in the order of the calls.
func begun(w *World) error {
	for _, wire := range []string{"fp32", "bf16", "fp32"} {
		if err := w.SetWire(wire); err != nil {
			return err
		}
		want := map[string]func(ranks, n, seed int) []float32{"fp32": total, "bf16": totalHalf}[wire]
		var x [][]float32
		for seed, n := range lengths {
			x = append(x, values(w.rank, n, seed))
			w.Begin(x[seed])
		}
		// One behind them, which is in float32 always.
		last := values(w.rank, 100, 99)
		if err := w.Sum(last); err != nil {
			return err
		}
		if err := same("sum behind those begun", last, total(w.ranks, 100, 99)); err != nil {
			return err
		}
		if err := w.Wait(); err != nil {
			return err
		}
		for seed, n := range lengths {
			if err := same("begun sum in "+wire, x[seed], want(w.ranks, n, seed)); err != nil {
				return err
			}
		}
	}
	if err := w.SetWire("fp16"); err == nil {
		return fmt.Errorf("fp16 was taken")
	}
	return w.Wait()
}

// agreed checks All and GatherBytes.
func agreed(w *World) error {
	for r := range w.ranks + 1 {
		got, err := w.All(w.rank != r)
		if err != nil {
			return err
		}
		if want := r == w.ranks; got != want {
			return fmt.Errorf("all but rank %d: %t", r, got)
		}
	}
	for _, scale := range []int{0, 1, smallRound} {
		own := bytes.Repeat([]byte{byte(w.rank + 1)}, w.rank*scale)
		got, err := w.GatherBytes(own)
		if err != nil {
			return err
		}
		for r, b := range got {
			if !bytes.Equal(b, bytes.Repeat([]byte{byte(r + 1)}, r*scale)) {
				return fmt.Errorf("bytes of rank %d, %d of them, differ", r, r*scale)
			}
		}
		if len(got) != w.ranks {
			return fmt.Errorf("bytes of %d ranks", len(got))
		}
	}
	if rank, ranks := w.Local(); rank != w.rank || ranks != w.ranks {
		return fmt.Errorf("on this machine rank %d of %d, not %d of %d", rank, ranks, w.rank, w.ranks)
	}
	return nil
}
