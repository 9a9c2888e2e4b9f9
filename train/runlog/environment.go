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
	Program   string `json:"program"` // module and version
	Revision  string `json:"revision,omitempty"`
	Modified  bool   `json:"modified,omitempty"` // built from a tree with uncommitted changes
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
	CPU       string `json:"cpu"`
	CPUs      int    `json:"cpus"`
	Threads   int    `json:"threads"`
	// what multiplies and its instruction set
	Kernels string   `json:"kernels"`
	Decoder string   `json:"decoder"`             // of JPEG files
	Limit   float64  `json:"cpu_limit,omitempty"` // of the container, in processors
	Args    []string `json:"args"`
}

// Setup is what a process computes with.
type Setup struct {
	Threads int
	Kernels string // the description of the engine
	Decoder string // of JPEG files
}

// CollectEnvironment describes this process, which computes with s, and its command line args.
func CollectEnvironment(s Setup, args []string) Environment {
	e := Environment{
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpu.Model(), CPUs: runtime.NumCPU(), Threads: s.Threads, Kernels: s.Kernels, Decoder: s.Decoder,
		Limit: cpu.Limit(), Args: slices.Clone(args),
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
