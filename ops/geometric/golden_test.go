package geometric

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestGeometricGolden compares the loss and the gradients of the head with PyTorch's, for
// all kernels, scales and kinds of heads, from tools/goldens/geometric.py.
func TestGeometricGolden(t *testing.T) {
	cases := optest.TorchCases(t, "geometric.json")
	if len(cases) != 36 {
		t.Errorf("got %d cases, want 36", len(cases))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind := strings.Split(name, "/")
			heads := c.Ints("heads")
			in := []optest.Input{c.Input("anchors"), c.Input("queue"), c.Input("index"), c.Input("weight"), c.Input("bias")}
			k := geomCase{tokens: int(heads[0]), groups: int(heads[1]), bias: true, o: Options{Kernel: kind[0], Epsilon: .8, Scale: kind[1]}}
			g, ns := optest.Nodes(in)
			loss := k.build(ns)
			grads := check.Get(gorgonia.Grad(loss, ns[3], ns[4]))(t)
			m := optest.Machine(t, g, ns, in, loss, grads[0], grads[1])
			check.OK(t, m.RunAll())
			weight := c.Floats("dweight")
			for _, want := range []struct {
				name string
				node *gorgonia.Node
			}{{"loss", loss}, {"dweight", grads[0]}, {"dbias", grads[1]}} {
				v := check.Get(m.Value(want.node))(t)
				got, exact := v.F32, c.Floats(want.name)
				if want.name == "dbias" { // may be 0, so it is held against the weight's
					got, exact = append(got[:len(got):len(got)], weight...), append(exact, weight...)
				}
				optest.Near(t, want.name, got, exact, 2e-5)
			}
		})
	}
}
