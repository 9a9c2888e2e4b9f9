package pixel

import (
	"os"
	"runtime"

	"golang.org/x/sys/cpu"
)

// Instruction sets, set once at start; tests lower them.
var (
	hasAVX2 bool // AVX2 and FMA
	hasWide bool // AVX-512 F, BW, DQ, VL and VBMI
)

func init() { setLevel(os.Getenv("GEOALIGN_CPU")) }

// setLevel sets what the processor has, but no more than level ("plain", "avx2"
// or "avx512"; anything else sets no limit).
func setLevel(level string) {
	x := cpu.X86
	hasAVX2 = runtime.GOARCH == "amd64" && level != "plain" && x.HasAVX2 && x.HasFMA
	hasWide = hasAVX2 && level != "avx2" && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL &&
		x.HasAVX512VBMI
}

// least is the number of values that the kernels for bytes and pixels need at
// least: one vector, since the last one overlaps the one before.
const least = 16
