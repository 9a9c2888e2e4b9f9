package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/mpi"
	"github.com/geoalign/geoalign/internal/words"
)

func newDoctorCommand() *cobra.Command {
	var out outputFlags
	var options kernel.Options
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine computes with, and the speed of a matrix product",
		Long: `doctor shows what this machine computes with: the processors that a container's limit leaves, the
instruction set, the speed of a transformer-sized matrix product in float32, bfloat16 and int8
(compute.precision), the NVIDIA GPUs that can be used (compute.device) with their memory and speed,
or what is missing, and the MPI library for training with several processes
(mpirun -n 4 trainer train).

Libraries are tried in a process of their own, so one that crashes or hangs is named and skipped.
GEOALIGN_CUDA_LIBRARIES lists folders or files of the driver, NVRTC and cuBLASLt in unusual places.`,
		Example: `  trainer doctor
  trainer doctor --backend builtin --threads 1
  trainer doctor --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			settings := config.Default()
			settings.Compute.Backend, settings.Compute.Threads = options.Backend, options.Threads
			if err := settings.Validate(); err != nil {
				return usageError{err}
			}
			d, err := examine(options)
			if err != nil {
				return err
			}
			if out.json {
				return printJSON(c.OutOrStdout(), d)
			}
			d.print(c.OutOrStdout())
			return nil
		},
	}
	out.add(c)
	c.Flags().StringVar(&options.Backend, "backend", "auto", "auto, builtin or plain")
	c.Flags().IntVar(&options.Threads, "threads", 0,
		"number of threads; 0: all processors, or what a container leaves of them")
	return c
}

// diagnosis is what doctor reports.
type diagnosis struct {
	Version  string    `json:"version"`
	System   string    `json:"system"`
	Static   bool      `json:"static"` // built with the tag static: no libraries
	CPUs     int       `json:"cpus"`
	Limit    float64   `json:"cpu_limit,omitempty"` // of a container, in processors
	Threads  int       `json:"threads"`
	Engine   string    `json:"engine"`
	Warnings []string  `json:"warnings,omitempty"`
	GEMM     gemmSpeed `json:"gemm"`
	BF16     reduced   `json:"bf16"`
	Int8     reduced   `json:"int8"`
	MPI      mpi.Info  `json:"mpi"`
	CUDA     gpu       `json:"cuda"`
	MoreCUDA []gpu     `json:"more_cuda,omitempty"` // the GPUs behind the first
}

// gemmSpeed is the measured speed of C (M x N) = A (M x K) B (K x N) in float32.
type gemmSpeed struct {
	M      int     `json:"m"`
	N      int     `json:"n"`
	K      int     `json:"k"`
	GFLOPS float64 `json:"gflops"`
}

// reduced is the same product in another precision.
type reduced struct {
	Engine   string   `json:"engine"`
	GFLOPS   float64  `json:"gflops"`
	Warnings []string `json:"warnings,omitempty"`
}

// measured is how long each product is measured.
const measured = 400 * time.Millisecond

// examine measures what options select.
func examine(options kernel.Options) (diagnosis, error) {
	d := diagnosis{
		Version: version(),
		System:  runtime.GOOS + "/" + runtime.GOARCH,
		Static:  dynlib.Static,
		CPUs:    runtime.NumCPU(),
		Limit:   cpu.Limit(),
		// The rows of 8 ViT-B/16 images of 224 pixels against one projection.
		GEMM: gemmSpeed{M: 1576, N: 768, K: 768},
		MPI:  mpi.Probe(),
		CUDA: examineGPU(0),
	}
	if n, err := cuda.Count(); err == nil {
		for i := 1; i < n; i++ {
			d.MoreCUDA = append(d.MoreCUDA, examineGPU(i))
		}
	}
	e, err := kernel.New(options)
	if err != nil {
		return d, err
	}
	defer e.Close()
	d.Threads, d.Engine = e.Threads(), e.Describe()
	d.GEMM.GFLOPS = kernel.MeasureGEMM(e, d.GEMM.M, d.GEMM.N, d.GEMM.K, measured)
	d.Warnings = e.Warnings()
	if d.Int8, err = d.reduced(options, "int8", func(e *kernel.Engine) float64 {
		return kernel.MeasureGEMM(e, d.GEMM.M, d.GEMM.N, d.GEMM.K, measured)
	}); err != nil {
		return d, err
	}
	d.BF16, err = d.reduced(options, "bf16", d.measureBF16)
	return d, err
}

// reduced measures the product in another precision. Warnings are those that the engine for float32 does not have.
func (d *diagnosis) reduced(options kernel.Options, precision string,
	measure func(*kernel.Engine) float64) (r reduced, err error) {
	options.Precision = precision
	e, err := kernel.New(options)
	if err != nil {
		return r, err
	}
	defer e.Close()
	r.Engine = e.Describe()
	for _, w := range e.Warnings() {
		if !slices.Contains(d.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
	r.GFLOPS = measure(e)
	return r, nil
}

// measureBF16 measures the product of operands that are stored in bfloat16.
func (d *diagnosis) measureBF16(e *kernel.Engine) float64 {
	m, n, k := d.GEMM.M, d.GEMM.N, d.GEMM.K
	ones := make([]uint16, max(m, n)*k)
	for i := range ones {
		ones[i] = 0x3f80
	}
	p := gemm.Product{M: m, N: n, K: k, TransB: true, Alpha: 1, BF16: true,
		A: gemm.Matrix{BF16: ones[:m*k], LD: k}, B: gemm.Matrix{BF16: ones[:n*k], LD: k}, C: make([]float32, m*n), LDC: n}
	return kernel.MeasureProduct(e, &p, measured)
}

// print writes the diagnosis for a person.
func (d diagnosis) print(w io.Writer) {
	limit := ""
	if d.Limit > 0 && d.Limit < float64(d.CPUs) {
		limit = fmt.Sprintf(", limited to %.3g by the container", d.Limit)
	}
	fmt.Fprintf(w, "trainer    %s\nsystem     %s, %s%s\n", d.Version, d.System, words.Count(d.CPUs, "processor"), limit)
	if d.Static {
		fmt.Fprintln(w, "build      static: runs without a C library, with the built-in decoders alone")
	}
	fmt.Fprintf(w, "products   %s\n", d.Engine)
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "%-10s %s\n", "", warning)
	}
	fmt.Fprintf(w, "speed      %.0f GFLOP/s for a float32 matrix product of %d x %d x %d on %s\n",
		d.GEMM.GFLOPS, d.GEMM.M, d.GEMM.N, d.GEMM.K, words.Count(d.Threads, "thread"))
	fmt.Fprintf(w, "bf16       %.0f GFLOP/s for the same product in bfloat16\n", d.BF16.GFLOPS)
	for _, warning := range d.BF16.Warnings {
		fmt.Fprintf(w, "%-10s %s\n", "", warning)
	}
	fmt.Fprintf(w, "int8       %.0f GOP/s for the same product by weights of 8 bits (inference)\n", d.Int8.GFLOPS)
	for _, warning := range d.Int8.Warnings {
		fmt.Fprintf(w, "%-10s %s\n", "", warning)
	}
	d.CUDA.print(w, "cuda")
	for i, g := range d.MoreCUDA {
		g.print(w, fmt.Sprint("cuda:", i+1))
	}
	d.printMPI(w)
}

// printMPI says by which library several processes would train. To have none is not a fault.
func (d diagnosis) printMPI(w io.Writer) {
	if d.MPI.Found {
		fmt.Fprintf(w, "mpi        found %s (interface: %s) %s\n", d.MPI.Library, d.MPI.Family, d.MPI.File)
	} else {
		fmt.Fprintf(w, "mpi        not usable, which only training on several processes needs: %s\n", d.MPI.Reason)
	}
	if d.MPI.Launcher != "" {
		fmt.Fprintf(w, "%-10s started as one of several by %s\n", "", d.MPI.Launcher)
	}
}

// gpu is what doctor reports of an NVIDIA GPU.
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

// examineGPU opens a GPU and measures it.
func examineGPU(index int) (g gpu) {
	d, err := cuda.Open(cuda.Options{Index: index})
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

// print says by which GPU graphs would run. To have none is not a fault.
func (g gpu) print(w io.Writer, name string) {
	if !g.Found {
		fmt.Fprintf(w, "%-10s not usable, which only compute.device = %q needs: %s\n", name, name, g.Reason)
		return
	}
	fmt.Fprintf(w, "%-10s found %s, %.1f GiB of it free\n", name, g.Info, g.FreeMB/1024)
	fmt.Fprintf(w, "%-10s %.1f TFLOP/s for a float32 matrix product of %d^3, %.1f in bfloat16\n", "", g.GFLOPS/1e3,
		g.Side, g.BF16GFLOPS/1e3)
}
