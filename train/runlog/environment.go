package runlog

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// Environment is what a run ran on.
type Environment struct {
	Program   string   `json:"program"` // module and version
	Revision  string   `json:"revision,omitempty"`
	Modified  bool     `json:"modified,omitempty"` // built from a tree with uncommitted changes
	GoVersion string   `json:"go_version"`
	Platform  string   `json:"platform"`
	CPU       string   `json:"cpu"`
	CPUs      int      `json:"cpus"`
	Threads   int      `json:"threads"`
	Kernels   string   `json:"kernels"`             // matrix library and instruction set, and what products choose among
	Tune      string   `json:"tune"`                // compute.tune, as far as it takes effect
	Limit     float64  `json:"cpu_limit,omitempty"` // of the container, in processors
	Args      []string `json:"args"`
}

// CollectEnvironment describes this process, with the threads, the description and the way of choosing kernels
// of the engine and the command line args.
func CollectEnvironment(threads int, kernels, tune string, args []string) Environment {
	e := Environment{
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpu.Model(), CPUs: runtime.NumCPU(), Threads: threads, Kernels: kernels, Tune: tune, Limit: cpu.Limit(), Args: slices.Clone(args),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		e.Program = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				e.Revision = s.Value
			case "vcs.modified":
				e.Modified = s.Value == "true"
			}
		}
	}
	return e
}
