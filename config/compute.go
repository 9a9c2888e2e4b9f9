package config

// Compute selects threads and kernels.
type Compute struct {
	Backend   string `toml:"backend"`                 // auto (the fastest found) | onednn | openblas | mkl | builtin (assembly) | plain (Go)
	Threads   int    `toml:"threads" max:"1024"`      // 0: all processors, or what the limit of a container leaves of them
	Tune      string `toml:"tune" read:"kernels"`     // how the kernel of each large matrix product is chosen among the libraries that are found and the built-in ones: off (by fixed rules) | cache (by what was measured on this machine, and a product that is not known is measured when it is first computed, within a second in all; the others keep the fixed rules until on measures them) | on (measured anew at each start, within ten seconds). A run goes on with the kernels that it began with
	Precision string `toml:"precision" read:"steps"`  // of matrix products: fp32 | bf16 (operands rounded to bfloat16, sums in float32; parameters, moments, statistics and losses stay float32, and convolutions compute in it). bf16 is faster on processors with AVX-512-BF16 or AMX
	Recompute bool   `toml:"recompute" read:"towers"` // compute the activations of every transformer block again in the backward pass instead of keeping them: less memory, about a third more time
	CheckNaN  bool   `toml:"check_nan" read:"steps"`  // name the first op that makes a NaN (slow)
}

func (x *Compute) defaults() { *x = Compute{Backend: "auto", Tune: "cache", Precision: "fp32"} }

func (x *Compute) check(k *checker, _ *Config) {
	k.oneOf("compute.backend", "auto", "onednn", "openblas", "mkl", "builtin", "plain")
	k.notNegative("compute.threads")
	k.oneOf("compute.tune", "off", "cache", "on")
	k.oneOf("compute.precision", "fp32", "bf16")
}
