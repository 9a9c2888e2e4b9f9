package runlog

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
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
	Kernels   string   `json:"kernels"` // matrix library and instruction set
	Decoder   string   `json:"decoder"` // of JPEG files
	Args      []string `json:"args"`
}

// CollectEnvironment describes this process, with the threads and the description
// of the kernel engine, the decoder of JPEG files and the command line args.
func CollectEnvironment(threads int, kernels, decoder string, args []string) Environment {
	e := Environment{
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpuModel(), CPUs: runtime.NumCPU(), Threads: threads, Kernels: kernels, Decoder: decoder, Args: slices.Clone(args),
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

// cpuModel returns the processor's name where the system tells it in
// /proc/cpuinfo, else the architecture.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}
