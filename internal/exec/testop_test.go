package exec_test

import (
	"fmt"
	"hash"
	"hash/fnv"
	"testing"

	"github.com/chewxy/hm"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// testOp is an op made of what a test cares about. kind alone is its identity.
type testOp struct {
	kind     string
	step     func(c *exec.Call)
	prepared func(c *exec.Call) // called by Prepare, if not nil
	alias    bool               // of operand 0
	inPlace  []int
	// accumulates makes an Accumulator, sum a Summer.
	accumulates, sum bool
	shape            tensor.Shape
	arity            int
}

func (o *testOp) Arity() int                       { return o.arity }
func (o *testOp) ReturnsPtr() bool                 { return true }
func (o *testOp) CallsExtern() bool                { return false }
func (o *testOp) OverwritesInput() int             { return -1 }
func (o *testOp) String() string                   { return o.kind + "{}" }
func (o *testOp) Kind() string                     { return o.kind }
func (o *testOp) WriteHash(h hash.Hash)            { fmt.Fprintf(h, "test/%s/%d", o.kind, o.arity) }
func (o *testOp) InPlace() []int                   { return o.inPlace }
func (o *testOp) Alias() (operand, _ int, ok bool) { return 0, -1, o.alias }

func (o *testOp) Accumulates() bool { return o.accumulates }
func (o *testOp) Sum() bool         { return o.sum }

func (o *testOp) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *testOp) Type() hm.Type {
	var ts []hm.Type
	for i := range o.arity {
		ts = append(ts, hm.TypeVariable('c'+rune(i)))
	}
	var out hm.Type = tensor.Float32
	if len(o.shape) > 0 {
		out = gorgonia.TensorType{Dims: len(o.shape), Of: tensor.Float32}
	}
	return hm.NewFnType(append(ts, out)...)
}

func (o *testOp) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.shape, nil }

func (o *testOp) Do(in ...gorgonia.Value) (gorgonia.Value, error) { return exec.Do(o, in...) }

func (o *testOp) Prepare(c *exec.Call) (exec.Step, error) {
	if o.prepared != nil {
		o.prepared(c)
	}
	return func() error { o.step(c); return nil }, nil
}

// apply puts the op into the graph of its operands.
func (o *testOp) apply(t testing.TB, shape tensor.Shape, in ...*gorgonia.Node) *gorgonia.Node {
	t.Helper()
	o.shape, o.arity = shape, len(in)
	return check.Get(gorgonia.ApplyOp(o, in...))(t)
}
