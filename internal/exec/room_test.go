package exec_test

import (
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestRoom: machines that share a room compute as by themselves, in turns, with their constants; their memory is that of
// the largest one.
func TestRoom(t *testing.T) {
	var room exec.Room
	type made struct {
		m   *exec.Machine
		out *gorgonia.Node
		n   int
	}
	var list []made
	for _, n := range []int{40, 7, 300, 5} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(n), gorgonia.WithName("x"))
		two := gorgonia.NewConstant(float32(2), gorgonia.WithName("two"))
		double := (&testOp{kind: "double", step: func(c *exec.Call) {
			for i, v := range c.In[0].F32 {
				c.Out.F32[i] = c.In[1].F32[0] * v
			}
		}}).apply(t, tensor.Shape{n}, x, two)
		out := (&testOp{kind: "more", step: func(c *exec.Call) {
			for i, v := range c.In[0].F32 {
				c.Out.F32[i] = v + 1
			}
		}}).apply(t, tensor.Shape{n}, double)
		m := check.Get(exec.Compile(g, exec.Config{Engine: engine, Outputs: gorgonia.Nodes{out}, Room: &room}))(t)
		in := make([]float32, n)
		for i := range in {
			in[i] = float32(n + i)
		}
		check.OK(t, m.SetInput(x, in))
		list = append(list, made{m, out, n})
	}
	for range 2 {
		for _, x := range list {
			check.OK(t, x.m.RunAll())
			v := check.Get(x.m.Value(x.out))(t)
			for i, got := range v.F32 {
				if want := float32(2*(x.n+i) + 1); got != want {
					t.Fatalf("%d elements: [%d] is %v, want %v", x.n, i, got, want)
				}
			}
		}
	}
	if got, most := room.Bytes(), list[2].m.Memory()+4*64; got < list[2].m.Memory() || got > most {
		t.Errorf("the room has %d bytes, the largest machine %d", got, list[2].m.Memory())
	}
}
