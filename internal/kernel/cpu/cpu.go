package cpu

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/cpu"
)

// Instruction sets that the assembly kernels choose between. They are set once,
// before any engine exists, and tests lower them to exercise every path.
var (
	// HasVectors is true where the kernels of float32 in assembly may be used: HasAVX2FMA or HasNEON.
	HasVectors bool
	// HasNEON is true on arm64, all of which have it.
	HasNEON bool
	// HasAVX2FMA is true where AVX2 and FMA may be used.
	HasAVX2FMA bool
	// HasAVX512 is true where AVX-512 F, BW, DQ and VL may be used (with AVX2 and FMA).
	HasAVX512 bool
	// HasBF16 is true where the instructions of AVX-512 BF16, or those of arm64, may be used.
	HasBF16 bool
	// HasVNNI is true where the products of bytes of AVX-512 VNNI may be used.
	HasVNNI bool
	// HasAMX is true where the processor multiplies tiles of bfloat16 (AMX) and the system lets this process do it.
	HasAMX bool
)

// Levels of the instruction sets, as GEOALIGN_CPU names them.
const (
	Plain  = "plain"
	AVX2   = "avx2"
	AVX512 = "avx512"
	AMX    = "amx" // with AVX-512
	NEON   = "neon"
)

// variable is the environment variable that lowers the level.
const variable = "GEOALIGN_CPU"

func init() { SetLevel(os.Getenv(variable)) }

// CheckEnvironment returns an error where GEOALIGN_CPU is set to what is not a level.
func CheckEnvironment() error {
	switch level := os.Getenv(variable); level {
	case "", Plain, AVX2, AVX512, AMX, NEON:
		return nil
	default:
		return fmt.Errorf("%s: must be %s, %s, %s, %s or %s (got %q): unset it for all that the processor has", variable,
			Plain, AVX2, AVX512, AMX, NEON, level)
	}
}

// SetLevel sets the instruction set variables to what the processor has, but
// no higher than level ("plain", "avx2" or "avx512", which is without AMX; what is of another processor, or anything
// else, sets no limit).
func SetLevel(level string) {
	HasAVX2FMA, HasAVX512, HasBF16, HasVNNI, HasAMX = false, false, false, false, false
	HasNEON = runtime.GOARCH == "arm64" && level != Plain
	HasVectors = HasNEON
	HasBF16 = HasNEON && bfdot()
	if runtime.GOARCH != "amd64" || level == Plain {
		return
	}
	HasAVX2FMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	HasVectors = HasAVX2FMA
	if level == AVX2 {
		return
	}
	HasAVX512 = HasAVX2FMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW &&
		cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
	HasBF16 = HasAVX512 && cpu.X86.HasAVX512BF16
	HasVNNI = HasAVX512 && cpu.X86.HasAVX512VNNI
	if level == AVX512 {
		return
	}
	HasAMX = HasBF16 && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && allowAMX()
}

// Level names the instruction set in use.
func Level() string {
	switch {
	case HasAMX:
		return AMX
	case HasAVX512:
		return AVX512
	case HasAVX2FMA:
		return AVX2
	case HasNEON:
		return NEON
	}
	return Plain
}
