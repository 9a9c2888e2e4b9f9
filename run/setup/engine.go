package setup

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train/runlog"
)

// Engine starts the kernels that a configuration asks for, and warns on
// standard error of libraries that were passed over, once in the life of the process. Close it after use.
func Engine(cfg config.Config) (*compute.Engine, error) {
	return EngineOf(parallel.Single{}, cfg, console.Lines(nil).Say)
}

// EngineOf is OpenEngine of one of several processes, all of which call it. Without compute.threads a process takes
// its share of the processors of its machine. Warnings of other ranks, and kernels other than its own, are told by
// rank 0.
func EngineOf(g parallel.Group, cfg config.Config, say func(format string, args ...any)) (*compute.Engine, error) {
	threads := cfg.Compute.Threads
	if p, ok := parallel.As[parallel.Placed](g); ok && threads == 0 {
		threads = p.Threads()
	}
	e, err := compute.New(compute.Options{Backend: cfg.Compute.Backend, Threads: threads,
		Precision: cfg.Compute.Precision})
	if err := parallel.Agree(g, err); err != nil {
		if e != nil {
			e.Close()
		}
		return nil, err
	}
	if err := openDevice(g, cfg.Compute, e, say); err != nil {
		e.Close()
		return nil, err
	}
	if g.Rank() == 0 {
		for _, w := range e.Warnings() {
			warnOnce(w)
		}
	}
	if g.Size() == 1 {
		return e, nil
	}
	if err = sameKernels(g, e, say); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// kernels is what a rank computes with.
type kernels struct {
	Engine   string
	Warnings []string
}

// sameKernels has rank 0 tell what other ranks compute with, where it is something else.
func sameKernels(g parallel.Group, e *compute.Engine, say func(format string, args ...any)) error {
	text, err := json.Marshal(kernels{e.Describe(), e.Warnings()})
	if err := parallel.Agree(g, err); err != nil {
		return err
	}
	all, err := g.GatherBytes(text)
	if err != nil || g.Rank() > 0 {
		return err
	}
	for _, line := range kernelNotes(all) {
		say("%s", line)
	}
	return nil
}

// kernelNotes are lines about ranks whose kernels are not those of rank 0.
func kernelNotes(all [][]byte) (lines []string) {
	var first kernels
	for r, text := range all {
		var k kernels
		if json.Unmarshal(text, &k) != nil {
			continue
		}
		if r == 0 {
			first = k
			continue
		}
		for _, w := range k.Warnings {
			if !slices.Contains(first.Warnings, w) {
				lines = append(lines, fmt.Sprintf("warning: rank %d: %s", r, w))
			}
		}
		if k.Engine != first.Engine {
			lines = append(lines, fmt.Sprintf(
				"warning: rank %d computes with %s and rank 0 with %s: the parameters of the ranks may drift apart by rounding: give all the same processors and GPUs, with compute.backend, compute.threads, CUDA_VISIBLE_DEVICES and GEOALIGN_CPU", r, k.Engine, first.Engine))
		}
	}
	return lines
}

// warnOnce gives a warning, once in the life of the process.
func warnOnce(w string) {
	if _, again := warned.LoadOrStore(w, true); !again {
		fmt.Fprintln(os.Stderr, "warning:", words.Visible(w))
	}
}

// warned holds the warnings that were given.
var warned sync.Map

// Description describes what a run computes with.
func Description(e *compute.Engine) runlog.Setup {
	return runlog.Setup{Threads: e.Threads(), Kernels: e.Describe(), Decoder: images.Pixels}
}
