// Package compute opens the kernels that models run on. Programs that use geoalign
// as a library make an Engine here and pass it to model, train and eval.
package compute

import "github.com/geoalign/geoalign/internal/kernel"

// Engine multiplies matrices and splits work over a fixed number of threads. One
// goroutine at a time may use it; Close stops its threads.
type Engine = kernel.Engine

// Options selects backend and threads; the zero value takes the fastest library
// that is found and all processors.
type Options = kernel.Options

// New starts an engine. A backend that is asked for by name and cannot be used is
// an error that says what to install.
func New(o Options) (*Engine, error) { return kernel.New(o) }
