package run

import (
	"fmt"
	"os"
	"sync"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/words"
)

// OpenEngine starts the kernels that a configuration asks for, and warns on standard
// error of libraries that were passed over, once in the life of the process. Close it
// after use.
func OpenEngine(cfg config.Config) (*compute.Engine, error) {
	e, err := compute.New(compute.Options{Backend: cfg.Compute.Backend, Threads: cfg.Compute.Threads, Precision: cfg.Compute.Precision})
	if err != nil {
		return nil, err
	}
	for _, w := range e.Warnings() {
		if _, again := warned.LoadOrStore(w, true); !again {
			fmt.Fprintln(os.Stderr, "warning:", words.Visible(w))
		}
	}
	return e, nil
}

// warned holds the warnings that were given.
var warned sync.Map
