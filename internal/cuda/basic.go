package cuda

import _ "embed"

//go:embed basic.cu
var basicText string

// basicSource has kernels that no op owns.
var basicSource = Source{Name: "basic", Text: basicText}

// Round enqueues the rounding of n floats to bfloat16.
func (d *Device) Round(to, from Pointer, n int) error {
	return d.Kernel(&basicSource, "round_bf16").Launch(Grid{X: Blocks(n, 1024), Threads: 256}, to, from, int64(n))
}

// Add enqueues to += from for n floats.
func (d *Device) Add(to, from Pointer, n int) error {
	return d.Kernel(&basicSource, "add").Launch(Grid{X: Blocks(n, 1024), Threads: 256}, to, from, int64(n))
}
