package exec

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// addGrain is the least number of elements worth a thread in an addition.
const addGrain = 16384

// prepare returns the step of an op: its own, the executor's for the additions
// that Gorgonia makes when a node has several gradients, or a generic one that
// goes through gorgonia.Op.Do and allocates.
func prepare(o gorgonia.Op, c *Call) (Step, error) {
	if own, ok := o.(Op); ok {
		return own.Prepare(c)
	}
	if isAdd(o) && c.In[0].Len() == c.Out.Len() && c.In[1].Len() == c.Out.Len() {
		return prepareAdd(c), nil
	}
	return prepareGeneric(o, c), nil
}

func prepareAdd(c *Call) Step {
	body := func(_, lo, hi int) {
		vector.Add(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
	}
	return func() error {
		c.Engine.For(c.Out.Len(), addGrain, body)
		return nil
	}
}

// addType and addName identify Gorgonia's element-wise addition, whose type is
// not exported.
var addType, addName = func() (reflect.Type, string) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("x"))
	y := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(2), gorgonia.WithName("y"))
	n := gorgonia.Must(gorgonia.Add(x, y))
	return reflect.TypeOf(n.Op()), n.Op().String()
}()

func isAdd(o gorgonia.Op) bool {
	return reflect.TypeOf(o) == addType && o.String() == addName
}

func prepareGeneric(o gorgonia.Op, c *Call) Step {
	return func() error {
		in := make([]gorgonia.Value, len(c.In))
		for i, a := range c.In {
			in[i] = a.value()
		}
		v, err := o.Do(in...)
		if err != nil {
			return err
		}
		return fill(c.Out, v)
	}
}

// value wraps an array for Gorgonia without a copy.
func (a Array) value() gorgonia.Value {
	switch {
	case len(a.Shape) == 0 && a.F32 != nil:
		return gorgonia.NewF32(a.F32[0])
	case len(a.Shape) == 0:
		return gorgonia.NewI32(a.I32[0])
	case a.F32 != nil:
		return tensor.New(tensor.WithShape(a.Shape...), tensor.WithBacking(a.F32))
	default:
		return tensor.New(tensor.WithShape(a.Shape...), tensor.WithBacking(a.I32))
	}
}

// valueAux carries auxiliary results along with a tensor, so that ops with them
// also run on Gorgonia's own machines.
type valueAux struct {
	*tensor.Dense
	aux []Array
}

// plainEngine serves Do.
var plainEngine = sync.OnceValues(func() (*kernel.Engine, error) {
	return kernel.New(kernel.Options{Backend: "plain", Threads: 1})
})

// Do runs an op once on fresh memory with a plain single-threaded engine. It
// serves gorgonia.Op.Do: other machines, and tests that compare against them.
func Do(o Op, in ...gorgonia.Value) (gorgonia.Value, error) {
	engine, err := plainEngine()
	if err != nil {
		return nil, err
	}
	c := &Call{Engine: engine}
	shapes := make([]tensor.Shape, len(in))
	for i, v := range in {
		a, err := arrayOf(v)
		if err != nil {
			return nil, err
		}
		var aux []Array
		if va, ok := v.(valueAux); ok {
			aux = va.aux
		}
		c.In, c.InAux = append(c.In, a), append(c.InAux, aux)
		shapes[i] = a.Shape
	}
	sizers := gorgonia.ShapesToDimSizers(shapes)
	shape, err := o.InferShape(sizers...)
	if err != nil {
		return nil, err
	}
	if a, ok := o.(Aliaser); ok {
		if operand, aux, ok := a.Alias(); ok {
			src := c.In[operand]
			if aux >= 0 {
				src = c.InAux[operand][aux]
			}
			src.Shape = shape
			return src.value(), nil
		}
	}
	ints := false
	if i, ok := o.(interface{ IntOutput() bool }); ok {
		ints = i.IntOutput()
	}
	c.Out = newArray(shape, ints)
	if a, ok := o.(Auxer); ok {
		for _, s := range a.Aux(shapes) {
			c.Aux = append(c.Aux, newArray(s.Shape, s.Int))
		}
	}
	if s, ok := o.(Scratcher); ok {
		c.Scratch = make([]float32, s.Scratch(shapes, c.Engine.Threads()))
	}
	if c.Inner, err = doInner(o, engine); err != nil {
		return nil, err
	}
	step, err := o.Prepare(c)
	if err != nil {
		return nil, err
	}
	if err := step(); err != nil {
		return nil, err
	}
	v := c.Out.value()
	if d, ok := v.(*tensor.Dense); ok && len(c.Aux) > 0 {
		return valueAux{d, c.Aux}, nil
	}
	return v, nil
}

func newArray(shape tensor.Shape, ints bool) Array {
	a := Array{Shape: shape.Clone()}
	if ints {
		a.I32 = make([]int32, shape.TotalSize())
	} else {
		a.F32 = make([]float32, shape.TotalSize())
	}
	return a
}

func arrayOf(v gorgonia.Value) (Array, error) {
	a := Array{Shape: v.Shape()}
	switch d := v.Data().(type) {
	case float32:
		a.F32 = []float32{d}
	case []float32:
		a.F32 = d
	case int32:
		a.I32 = []int32{d}
	case []int32:
		a.I32 = d
	default:
		return a, fmt.Errorf("exec: unsupported value %T", d)
	}
	return a, nil
}
