package encoders

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TestGoldenClasses compares towers with three class tokens, the further two in the last
// block or in all, with an independent PyTorch implementation (tools/goldens/classes.py):
// every result to 1e-5 and the gradient of every parameter to 1e-4 of its largest element.
func TestGoldenClasses(t *testing.T) {
	for name, blocks := range map[string]int{"last": 1, "all": 0} {
		t.Run(name, func(t *testing.T) { goldenClasses(t, "testdata/classes_"+name+".safetensors", blocks) })
	}
}

func goldenClasses(t *testing.T, file string, blocks int) {
	f := check.Get(safetensors.Open(file))(t)
	defer f.Close()
	want := func(name string) []float32 {
		return check.Get(f.Float32(name))(t)
	}
	ints := func(name string) (out []int32) {
		v := check.Get(f.Int64(name))(t)
		for _, x := range v {
			out = append(out, int32(x))
		}
		return out
	}
	v, b := several(blocks)
	s := newStore(0)
	on, c := NewScope(s), &Context{}
	images, ids, lengths := s.floats("images", 3, 3, 8, 8), s.ints("ids", 3*tokens), s.ints("lengths", 3)
	parts := map[string]*gorgonia.Node{}
	parts["tokens"], parts["classes"] = v.Encode(on.In("image"), images)
	parts["states"], parts["text_classes"] = b.TextClasses(c, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, true)
	parts["text"] = b.Text(c, on.In("text"), TextArgs{IDs: ids, Lengths: lengths, Len: tokens}, nil)
	names := []string{"tokens", "classes", "states", "text_classes", "text"}
	var sums, outputs gorgonia.Nodes
	for _, name := range names {
		x := parts[name]
		sums = append(sums, arith.Sum(nn.LinearGELU(x, on.Param("read/"+name, Zeros, 4, x.Shape()[1]), nil)))
		outputs = append(outputs, x)
	}
	loss := arith.WeightedSum([]float32{1, 1, 1, 1, 1}, sums...)
	var params []string
	var wrt gorgonia.Nodes
	for name, n := range s.nodes {
		params, wrt = append(params, name), append(wrt, n)
	}
	grads := check.Get(gorgonia.Grad(loss, wrt...))(t)
	m := check.Get(exec.Compile(s.g, exec.Config{Engine: engine, Outputs: append(append(outputs, loss), grads...)}))(t)
	inputs := map[*gorgonia.Node]any{images: want("input/images"), ids: ints("input/ids"), lengths: ints("input/lengths")}
	for name, n := range s.nodes {
		inputs[n] = want("param/" + name)
	}
	for n, v := range inputs {
		check.OK(t, m.SetInput(n, v))
	}
	check.OK(t, m.RunAll())
	check := func(what string, n *gorgonia.Node, want []float32, tol float64) {
		a := check.Get(m.Value(n))(t)
		largest := 1e-2 // smaller are gradients that are zero in exact arithmetic, such as a key bias's
		for _, v := range want {
			largest = max(largest, math.Abs(float64(v)))
		}
		if len(a.F32) != len(want) {
			t.Errorf("%s: %d values, PyTorch has %d", what, len(a.F32), len(want))
		} else if d := distance(a.F32, want); !(d <= tol*largest) {
			t.Errorf("%s differs by %.1e of its largest value, %v", what, d/largest, largest)
		}
	}
	for _, name := range names {
		check(name, parts[name], want("expect/"+name), 1e-5)
	}
	check("loss", loss, want("expect/loss"), 1e-5)
	for i, name := range params {
		check("gradient of "+name, grads[i], want("grad/"+name), 1e-4)
	}
	if n := len(f.Tensors()); n != 2*len(params)+len(inputs)-len(params)+len(names)+1 {
		t.Errorf("%d tensors for %d parameters", n, len(params))
	}
}
