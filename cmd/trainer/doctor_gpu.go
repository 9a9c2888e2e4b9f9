package main

import (
	"fmt"
	"io"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// gpu is what doctor reports of the first NVIDIA GPU.
type gpu struct {
	Found  bool      `json:"found"`
	Info   cuda.Info `json:"info,omitzero"`
	FreeMB float64   `json:"free_mb,omitempty"`
	// Speed of a product of matrices of Side^2 in float32 and in bfloat16.
	Side       int     `json:"side,omitempty"`
	GFLOPS     float64 `json:"gflops,omitempty"`
	BF16GFLOPS float64 `json:"bf16_gflops,omitempty"`
	Reason     string  `json:"reason,omitempty"` // why it is not usable, and what to do
}

// examineGPU opens the GPU and measures it.
func examineGPU() (g gpu) {
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		g.Reason = err.Error()
		return g
	}
	defer func() { _ = d.Close() }() // nothing of it is needed any more
	g.Info = d.Info()
	free, err := d.Free()
	g.FreeMB = float64(free) / (1 << 20)
	for g.Side = cuda.Measured; g.Side > 512 && 4*4*int64(g.Side)*int64(g.Side) > free; {
		g.Side /= 2 // of a device that others have filled
	}
	if err == nil {
		g.GFLOPS, err = d.MeasureProduct(g.Side, g.Side, g.Side, exec.Float32, measured/2)
	}
	if err == nil {
		g.BF16GFLOPS, err = d.MeasureProduct(g.Side, g.Side, g.Side, exec.BFloat16, measured/2)
	}
	if g.Found = err == nil; !g.Found {
		g.Reason = err.Error()
	}
	return g
}

// print says by which GPU graphs would run. To have none is no fault.
func (g gpu) print(w io.Writer) {
	if !g.Found {
		fmt.Fprintf(w, "cuda       not usable, which only compute.device = \"cuda\" needs: %s\n", g.Reason)
		return
	}
	fmt.Fprintf(w, "cuda       found %s, %.1f GiB of it free\n", g.Info, g.FreeMB/1024)
	fmt.Fprintf(w, "%-10s %.1f TFLOP/s for a float32 matrix product of %d^3, %.1f in bfloat16\n", "", g.GFLOPS/1e3, g.Side, g.BF16GFLOPS/1e3)
}
