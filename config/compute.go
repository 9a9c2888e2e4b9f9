package config

import (
	"strconv"
	"strings"
)

// Compute selects device, threads and kernels.
type Compute struct {
	Device    string `toml:"device"`                  // where graphs run: cpu | cuda (the first NVIDIA GPU) | cuda:1 (the second) ...; see docs/gpu.md. Ops without a step for the device run on the host, with copies. A checkpoint is of no device: --set compute.device=cpu opens one of a GPU without it
	TF32      bool   `toml:"tf32" read:"gpu"`         // on a GPU with compute.precision = "fp32": products may round operands to TF32 (10 bits of mantissa), which its matrix units compute several times as fast
	Backend   string `toml:"backend"`                 // auto (the fastest found) | onednn | openblas | mkl | builtin (assembly) | plain (Go)
	Threads   int    `toml:"threads" max:"1024"`      // 0: all processors, or what the limit of a container leaves of them
	Tune      string `toml:"tune" read:"kernels"`     // how the kernel of each large matrix product is chosen among the libraries that are found and the built-in ones: off (by fixed rules) | cache (by what was measured on this machine, and a product that is not known is measured when it is first computed, within a second in all; the others keep the fixed rules until on measures them) | on (measured anew at each start, within ten seconds). A run goes on with the kernels that it began with. On a GPU likewise among what cuBLASLt proposes, of which off takes the first
	Precision string `toml:"precision" read:"steps"`  // of matrix products: fp32 | bf16 (operands rounded to bfloat16, sums in float32; parameters, moments, statistics and losses stay float32, and convolutions compute in it). bf16 is faster on GPUs and on processors with AVX-512-BF16 or AMX
	Recompute bool   `toml:"recompute" read:"towers"` // compute the activations of every transformer block again in the backward pass instead of keeping them: less memory, about a third more time
	CheckNaN  bool   `toml:"check_nan" read:"steps"`  // name the first op that makes a NaN (slow, on a GPU very much so)
}

func (x *Compute) defaults() {
	*x = Compute{Device: DeviceCPU, Backend: "auto", Tune: "cache", Precision: "fp32"}
}

// DeviceCPU is compute.device of the host's processors.
const DeviceCPU = "cpu"

// deviceCUDA begins compute.device of a GPU.
const deviceCUDA = "cuda"

// CUDA returns the number of the GPU that compute.device names; false for the host.
func (x *Compute) CUDA() (index int, ok bool) {
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

func (x *Compute) check(k *checker, c *Config) {
	_, gpu := x.CUDA()
	k.Require("compute.device", gpu || x.Device == DeviceCPU, "must be cpu, cuda or cuda:N")
	if gpu {
		k.Training("train.accumulate", !c.AccumulatesFeatures(), `must be "gradients" with compute.device = "cuda"`, "a GPU keeps one micro-batch at a time: raise train.batch_size instead")
	}
	k.OneOf("compute.backend", "auto", "onednn", "openblas", "mkl", "builtin", "plain")
	k.NotNegative("compute.threads")
	k.OneOf("compute.tune", "off", "cache", "on")
	k.OneOf("compute.precision", "fp32", "bf16")
}
