package kernel

import (
	"os"
	"runtime"

	"golang.org/x/sys/cpu"
)

// Instruction sets that the assembly kernels choose between. They are set once,
// before any engine exists, and tests lower them to exercise every path.
var (
	// hasAVX2FMA is true where AVX2 and FMA may be used.
	hasAVX2FMA bool
	// hasAVX512 is true where AVX-512 F, BW, DQ and VL may be used (with AVX2 and FMA).
	hasAVX512 bool
	// hasBF16 is true where the instructions of AVX-512 BF16 may be used.
	hasBF16 bool
	// hasAMX is true where the processor multiplies tiles of bfloat16 (AMX). Our
	// own kernels do not use it; the libraries do.
	hasAMX bool
)

// Levels of the instruction sets, as GEOALIGN_CPU names them.
const (
	levelPlain  = "plain"
	levelAVX2   = "avx2"
	levelAVX512 = "avx512"
)

func init() { setCPULevel(os.Getenv("GEOALIGN_CPU")) }

// setCPULevel sets the instruction set variables to what the processor has, but
// no higher than level ("plain", "avx2" or "avx512"; anything else sets no limit).
func setCPULevel(level string) {
	hasAVX2FMA, hasAVX512, hasBF16, hasAMX = false, false, false, false
	if runtime.GOARCH != "amd64" || level == levelPlain {
		return
	}
	hasAVX2FMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA
	if level == levelAVX2 {
		return
	}
	hasAVX512 = hasAVX2FMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW &&
		cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
	hasBF16 = hasAVX512 && cpu.X86.HasAVX512BF16
	hasAMX = hasBF16 && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16
}

// cpuLevel names the instruction set in use.
func cpuLevel() string {
	switch {
	case hasAVX512:
		return levelAVX512
	case hasAVX2FMA:
		return levelAVX2
	}
	return levelPlain
}
