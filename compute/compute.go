package compute

import (
	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// Engine multiplies matrices and splits work over a fixed number of threads. One
// goroutine at a time may use it; Close stops its threads.
type Engine = kernel.Engine

// Options selects backend and threads; the zero value takes the fastest products and all processors.
type Options = kernel.Options

// New starts an engine.
func New(o Options) (*Engine, error) { return kernel.New(o) }

// ProbeInChild makes the program try a decoder of JPEG files that it finds in a child process before it is loaded, so
// that a library that crashes or hangs is passed over with a warning instead of ending the program. It must be the
// first call of main: the child is this program again, and in it ProbeInChild does not return. The outcome is kept in
// the user's cache folder, so that later starts need no child. Without this call libraries are loaded straight away.
func ProbeInChild() { dynlib.ProbeInChild() }

// Machine is a compiled graph: a gorgonia.VM whose runs allocate nothing.
type Machine = exec.Machine

// Config says which nodes to compute and with which engine.
type Config = exec.Config

// Recompute names the blocks of a graph whose results the backward pass computes again
// instead of keeping them.
type Recompute = exec.Recompute

// Block is a range of node ids, see Recompute.
type Block = exec.Block

// NextID returns an id between those of the nodes that g has and those that are added
// later: call it before and after a block is built.
func NextID(g *gorgonia.ExprGraph) int64 { return exec.NextID(g) }

// Array is the value of a node in the host's memory.
type Array = exec.Array

// The seam to other devices, see the comment of the package.
type (
	Device   = exec.Device
	Memory   = exec.Memory
	Buffer   = exec.Buffer
	Spec     = exec.Spec
	Type     = exec.Type
	Operand  = exec.Operand
	HostCall = exec.Call
	Call     = exec.DeviceCall
	Step     = exec.Step
)

// Types of a buffer's values.
const (
	Float32  = exec.Float32
	Int32    = exec.Int32
	BFloat16 = exec.BFloat16
)

// Compile plans the order and the memory of the nodes that c.Outputs depend on.
func Compile(g *gorgonia.ExprGraph, c Config) (*Machine, error) { return exec.Compile(g, c) }
