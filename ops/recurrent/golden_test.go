package recurrent

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// TestGRUGolden holds states, last states and all gradients against nn.GRU over packed sequences.
func TestGRUGolden(t *testing.T) {
	parts := []string{"x", "weight_ih", "weight_hh", "bias_ih", "bias_hh"}
	for name, c := range optest.TorchCases(t, "gru.json") {
		_, both := c["weight_ih_reverse"]
		_, started := c["start"]
		// The states to start from are those of both directions, one after the other.
		direction := func(get func(string) *gorgonia.Node, suffix string, reverse bool) *gorgonia.Node {
			a := Args{X: get("x"), Lengths: get("lengths"), WeightIH: get("weight_ih" + suffix), WeightHH: get("weight_hh" + suffix),
				BiasIH: get("bias_ih" + suffix), BiasHH: get("bias_hh" + suffix), Len: 5, Reverse: reverse}
			if started {
				from := 0
				if reverse {
					from = 5
				}
				a.Start = layout.StridedRows(get("start"), from, 1, 5)
			}
			return GRU(a)
		}
		want := map[string]string{}
		for in := range c {
			if _, ok := c["d"+in]; ok {
				want[in] = "d" + in
			}
		}
		t.Run(name, func(t *testing.T) {
			c.Check(t, 2e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				if out := direction(get, "", false); !both {
					return out
				}
				return layout.ConcatColumns(direction(get, "", false), direction(get, "_reverse", true))
			}, want)
		})
		t.Run(name+", last", func(t *testing.T) {
			names := append([]string{"lengths"}, parts...)
			if both {
				for _, p := range parts[1:] {
					names = append(names, p+"_reverse")
				}
			}
			if started {
				names = append(names, "start")
			}
			var in []optest.Input
			for _, n := range names {
				in = append(in, c.Input(n))
			}
			got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
				get := func(name string) *gorgonia.Node {
					for i, n := range names {
						if n == name {
							return ns[i]
						}
					}
					return nil
				}
				last := Last(direction(get, "", false), get("lengths"), 5, false)
				if both {
					last = layout.ConcatRows(last, Last(direction(get, "_reverse", true), get("lengths"), 5, true))
				}
				return last
			}, in...)
			optest.Near(t, "last states", got.F32, c.Floats("last"), 2e-6)
		})
	}
}

// TestAttendedGolden holds states and all gradients against torch.gru_cell with attention before each word.
func TestAttendedGolden(t *testing.T) {
	for name, c := range optest.TorchCases(t, "attended.json") {
		want := map[string]string{}
		for in := range c {
			if _, ok := c["d"+in]; ok {
				want[in] = "d" + in
			}
		}
		t.Run(name, func(t *testing.T) {
			c.Check(t, 2e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				return Attended(AttendedArgs{X: get("x"), Lengths: get("lengths"), Keys: get("keys"), Values: get("values"), MemoryLengths: get("memory"),
					Query: get("query"), Score: get("score"), WeightHH: get("weight_hh"), BiasHH: get("bias_hh"), Start: get("start"), Len: 4, Memory: 3})
			}, want)
		})
	}
}
