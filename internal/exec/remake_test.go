package exec_test

import (
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// remaker is a test op that makes its last operand again.
type remaker struct {
	halfOp
	keepsOn string // a device
}

func (r *remaker) Remakes(device string) bool { return device == "" || device != r.keepsOn }

// TestRemake: what makes an operand again runs in bfloat16 alone, or where it is asked for itself, without that operand, whose memory
// is free then; otherwise its readers have the operand.
func TestRemake(t *testing.T) {
	const n = 640
	shape := tensor.Shape{n}
	add := func(c *exec.Call) {
		for i, v := range c.In[0].F32 {
			c.Out.F32[i] = v + 1
		}
	}
	memory := map[string]int64{}
	for _, c := range []struct {
		name   string
		engine *kernel.Engine
		asked  bool
		runs   int
		device exec.Device
	}{{"fp32", engine, false, 0, nil}, {"bf16", halfEngine, false, 1, nil}, {"fp32 asked for", engine, true, 1, nil}, {"kept on a device", halfEngine, false, 0, &ram{}}} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(n), gorgonia.WithName("x"))
		first := (&testOp{kind: "first", step: add}).apply(t, shape, x)
		// Its memory is the peak, which what is kept adds to.
		wide := (&testOp{kind: "wide", step: func(c *exec.Call) { copy(c.Out.F32, c.In[0].F32) }}).apply(t, tensor.Shape{3 * n}, first)
		narrow := (&testOp{kind: "narrow", step: func(c *exec.Call) { copy(c.Out.F32, c.In[0].F32[:n]) }}).apply(t, shape, wide)
		runs, operands := 0, 0
		op := &remaker{halfOp{testOp: testOp{kind: "again", step: func(c *exec.Call) { runs, operands = runs+1, len(c.In); add(c) }}}, "ram"}
		op.shape, op.arity = shape, 2
		again := check.Get(gorgonia.ApplyOp(op, x, first))(t)
		sum := (&testOp{kind: "sum", step: func(c *exec.Call) {
			for i, v := range c.In[0].F32 {
				c.Out.F32[i] = 10*v + c.In[1].F32[i]
			}
		}}).apply(t, shape, again, narrow)
		outputs := gorgonia.Nodes{sum}
		if c.asked {
			outputs = append(outputs, again)
		}
		m := check.Get(exec.Compile(g, exec.Config{Engine: c.engine, Device: c.device, Outputs: outputs}))(t)
		memory[c.name] = m.Memory()
		in := make([]float32, n)
		for i := range in {
			in[i] = float32(i)
		}
		check.OK(t, m.SetInput(x, in))
		check.OK(t, m.RunAll())
		v := check.Get(m.Value(sum))(t)
		for i, got := range v.F32 {
			if want := 11 * float32(i+1); got != want {
				t.Fatalf("%s: [%d] is %v, want %v", c.name, i, got, want)
			}
		}
		if runs != c.runs || runs > 0 && operands != 1 {
			t.Errorf("%s: made again %d times of %d operands, want %d times of 1", c.name, runs, operands, c.runs)
		}
	}
	if memory["bf16"] != memory["fp32"]-4*n {
		t.Errorf("%d bytes where the operand is made again, %d where it is kept", memory["bf16"], memory["fp32"])
	}
}
