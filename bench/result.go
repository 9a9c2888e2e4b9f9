package bench

import (
	"slices"

	"github.com/geoalign/geoalign/config"
)

// Result is what bench reports of one configuration.
type Result struct {
	Config     string        `json:"config"`
	System     string        `json:"system,omitempty"`
	Precision  string        `json:"precision,omitempty"`
	Score      string        `json:"score,omitempty"` // of the contrast
	Engine     string        `json:"engine"`
	Threads    int           `json:"threads"`
	Parameters int           `json:"parameters"`
	Trained    int           `json:"trained,omitempty"` // of them; 0 in results of earlier versions
	Batch      int           `json:"batch"`
	Nodes      int           `json:"nodes"`
	Steps      int           `json:"steps"`
	StepMS     float64       `json:"step_ms"` // median, and the share of a step in the cost of rebuilding graphs
	Samples    float64       `json:"samples_per_second"`
	GFLOP      float64       `json:"gflop_per_step"`
	GFLOPS     float64       `json:"gflops"`
	Peak       float64       `json:"gemm_peak_gflops"`                // in the precision of the run
	PeakFP32   float64       `json:"gemm_peak_fp32_gflops,omitempty"` // if that is another one
	Share      float64       `json:"share_of_peak"`
	Outside    float64       `json:"share_outside_kernels"`
	Allocs     float64       `json:"allocations_per_step"`
	HeapGrowth int64         `json:"heap_growth_bytes"`        // over the measured steps
	PeakMB     float64       `json:"peak_memory_mb,omitempty"` // largest resident size; 0: not known
	BufferMB   float64       `json:"buffers_mb"`               // planned for the results of a step
	StateMB    float64       `json:"state_mb,omitempty"`       // parameters, gradients, moments, EMA copies, queue
	HeapMB     float64       `json:"heap_mb"`                  // of Go
	Device     *DeviceResult `json:"device,omitempty"`         // nil on the host
	First      *Startup      `json:"first_step,omitempty"`     // nil where the process did something else before
	Graphs     *GraphCost    `json:"graph_rebuild,omitempty"`  // nil without graphs over the queue
	Ranks      *Ranks        `json:"ranks,omitempty"`          // nil of one process; the rest is that of rank 0
	Phases     []Time        `json:"phases"`
	Ops        []Time        `json:"ops"`
}

// together makes the speed that of all ranks, which the slowest has, and the phases those of a step that is made with
// others.
func (r *Result) together(cfg config.Config) {
	r.StepMS = r.Ranks.StepMS.Max
	if r.Graphs != nil {
		r.StepMS += r.Graphs.StepMS()
	}
	micro := max(1, cfg.Train.AccumulateSteps)
	r.Samples = float64(micro*cfg.Train.BatchSize) / (r.StepMS / 1e3)
	r.GFLOP *= float64(micro)
	r.GFLOPS = r.GFLOP / (r.StepMS / 1e3)
	for i := range r.Phases {
		if r.Phases[i].Name == "load and read" {
			r.Phases[i].Name = "sums, update and reading"
		}
	}
	r.Phases = slices.DeleteFunc(r.Phases, func(p Time) bool { return p.MS == 0 })
}

// Startup is the place of the first step in time, in seconds from the start of the
// process.
type Startup struct {
	Begin float64 `json:"begin_seconds"`
	End   float64 `json:"end_seconds"`
}

// Time is the time of a part of the step.
type Time struct {
	Name   string  `json:"name"`
	Nodes  int     `json:"nodes,omitempty"`
	MS     float64 `json:"ms"` // per step
	Share  float64 `json:"share"`
	GFLOPS float64 `json:"gflops,omitempty"`
}
