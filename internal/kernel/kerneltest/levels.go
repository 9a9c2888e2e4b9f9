package kerneltest

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// EachLevel runs a test at every instruction set of this machine.
func EachLevel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer cpu.SetLevel(cpu.Level())
	for _, level := range []string{cpu.Plain, cpu.AVX2, cpu.AVX512, cpu.AMX, cpu.NEON} {
		cpu.SetLevel(level)
		if cpu.Level() != level {
			t.Logf("%s is not available", level)
			continue
		}
		t.Run(level, f)
	}
}

// What products must carry on.
var (
	NaN = float32(math.NaN())
	Inf = float32(math.Inf(1))
)
