package compute

import (
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// Settings selects device, threads and kernels.
type Settings struct {
	// where graphs run: cpu | cuda (the first NVIDIA GPU; of several processes each has its own) | cuda:1 (the second,
	// which all processes of a machine share) ...; see docs/gpu.md. Ops without a
	// step for the device run on the host, with copies. A checkpoint is of no device: --set compute.device=cpu opens
	// one of a GPU without it
	Device string `toml:"device"`
	// on a GPU with compute.precision = "fp32": products may round operands to TF32 (10 bits of mantissa), which its
	// matrix units compute several times as fast
	TF32 bool `toml:"tf32" when:"gpu and precision=fp32"`
	// auto (assembly; on macOS products are Accelerate's) | builtin (assembly) | plain (Go)
	Backend string `toml:"backend"`
	// 0: all processors, or what the limit of a container leaves of them
	Threads int `toml:"threads" max:"1024"`
	// of matrix products: fp32 | bf16 (operands rounded to bfloat16, sums in float32; parameters, moments, statistics
	// and losses stay float32, and convolutions compute in it) | int8 (of a trained model: linear layers round weights
	// and rows of activations to 8 bits, all else is float32; see docs/export.md). bf16 is faster on GPUs and on
	// processors with AVX-512-BF16, AMX or, on arm64, BFDOT, int8 with AVX-512-VNNI and AVX2
	Precision string `toml:"precision" when:"steps"`
	// compute the activations of every transformer block again in the backward pass instead of keeping them: less
	// memory, about a third more time
	Recompute bool `toml:"recompute" when:"towers"`
	// name the first op that makes a NaN (slow, on a GPU very much so)
	CheckNaN bool `toml:"check_nan" when:"steps"`
}

// Defaults implements section.Defaulter.
func (x *Settings) Defaults() {
	*x = Settings{Device: DeviceCPU, Backend: "auto", Precision: "fp32"}
}

// DeviceCPU is compute.device of the host's processors.
const DeviceCPU = "cpu"

// Int8 is compute.precision of products in int8.
const Int8 = "int8"

// deviceCUDA begins compute.device of a GPU.
const deviceCUDA = "cuda"

// CUDA returns the number of the GPU that compute.device names; false for the host.
func (x *Settings) CUDA() (index int, ok bool) {
	name, number, numbered := strings.Cut(x.Device, ":")
	if name != deviceCUDA {
		return 0, false
	}
	if !numbered {
		return 0, true
	}
	index, err := strconv.Atoi(number)
	return index, err == nil && index >= 0 && index < 1024 && strconv.Itoa(index) == number
}

// Ordinal says whether compute.device names a GPU by its number, which then is that of all processes of a machine.
func (x *Settings) Ordinal() bool { return strings.Contains(x.Device, ":") }

// ByLibrary says whether compute.backend is one of the libraries that computed products up to configuration version 2.
func (x *Settings) ByLibrary() bool {
	return slices.Contains([]string{"onednn", "openblas", "mkl"}, x.Backend)
}

// Check implements section.Checked.
func (x *Settings) Check(k *section.Checker) {
	_, gpu := x.CUDA()
	k.Require("device", gpu || x.Device == DeviceCPU, "must be cpu, cuda or cuda:N")
	if gpu {
		k.Training("train.accumulate", k.Value("train.accumulate") != "features" ||
			k.Number("train.accumulate_steps") <= 1, `must be "gradients" with compute.device = "cuda"`,
			"a GPU keeps one micro-batch at a time: raise train.batch_size instead")
	}
	k.Require("backend", !x.ByLibrary(), "is no longer a backend",
		`products are built in: leave it out, or write "auto"`)
	k.OneOf("backend", "auto", "builtin", "plain")
	k.NotNegative("threads")
	k.OneOf("precision", "fp32", "bf16", Int8)
	k.Require("precision", x.Precision != Int8 || !gpu, `must be "fp32" or "bf16" with compute.device = "cuda"`,
		"int8 is of processors")
	k.Training("precision", x.Precision != Int8, `must be "fp32" or "bf16" to train`,
		"int8 is for a trained model: eval, embed, search, serve and bench --inference take --set compute.precision=int8")
}

// Gives implements section.Giver.
func (x *Settings) Gives() []section.Fact {
	if _, gpu := x.CUDA(); gpu {
		return []section.Fact{section.GPU}
	}
	return nil
}
