package nn

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestCUDA(t *testing.T) {
	cases := deviceCases(!cudatest.Emulated(cudatest.Open(t)))
	for _, c := range nnCases() {
		if c.Name == ofRanks {
			optest.CheckCUDA(t, []optest.Case{c}, "batch norm", "batch norm dx")
			continue
		}
		cases = append(cases, c)
	}
	optest.CheckCUDA(t, cases)
}

// ofRanks is the case of statistics that processes exchange, which the host does.
const ofRanks = "batch norm of ranks"

// TestCUDALongRows: what registers do not hold the host does.
func TestCUDALongRows(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	const cols = 8196
	in := []optest.Input{optest.F32s(r, "x", 2, cols), optest.F32s(r, "gamma", cols), optest.F32s(r, "beta", cols)}
	optest.CheckCUDA(t, []optest.Case{{
		Name: "layer norm", Inputs: in, WRT: []int{0, 1, 2},
		Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-3) },
	}}, "layer norm dx")
}

// deviceCases are shapes that matter to a device: rows of whole warps and not, held by warps and by blocks, more rows than
// blocks run at a time, indices that come very often. large ones take an emulator too long.
func deviceCases(large bool) (cases []optest.Case) {
	r := rand.New(rand.NewPCG(15, 16))
	key := optest.I32s("key", []int32{7, -8}, 2)
	add := func(c optest.Case) {
		if large || !strings.HasPrefix(c.Name, "large") {
			cases = append(cases, c)
		}
	}
	for _, s := range []struct {
		name       string
		rows, cols int
	}{
		{"one element", 1, 1}, {"one row", 1, 768}, {"one column", 70, 1}, {"of 768", 37, 768}, {"of 1000", 5, 1000},
		{"odd", 3, 999}, {"a block for a row", 3, 3072},
		{"odd, a block for a row", 2, 1501}, {"more than blocks", 1700, 12}, {"large", 8224, 768}, {"large, of 3072", 3000, 3072},
	} {
		rows, cols := s.rows, s.cols
		x, h, gamma, beta := optest.F32s(r, "x", rows, cols), optest.F32s(r, "h", rows, cols), optest.F32s(r, "gamma", cols),
			optest.F32s(r, "beta", cols)
		layerNormWRT := []int{0, 1, 2}
		if cols == 1 {
			layerNormWRT = layerNormWRT[1:] // the gradient of x is 0 to rounding
		}
		prefix := ""
		if strings.HasPrefix(s.name, "large") {
			prefix = "large "
		}
		add(optest.Case{Name: prefix + "layer norm " + s.name, Inputs: []optest.Input{x, gamma, beta}, WRT: layerNormWRT,
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(ns[0], ns[1], ns[2], 1e-3) }})
		add(optest.Case{Name: prefix + "add norm " + s.name, Inputs: []optest.Input{x, h, gamma, beta, key},
			WRT: []int{0, 1, 2, 3},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				sum, norm := AddNorm(AddNormArgs{H: ns[1], X: ns[0], Bits: DropoutBits(ns[4], 3, rows, cols, 0.75), Gamma: ns[2],
					Beta: ns[3], Keep: 0.75, Eps: 1e-3})
				return arith.Add(sum, norm)
			}})
	}
	for _, s := range []struct {
		name       string
		rows, cols int
	}{{"64", 70, 64}, {"61", 70, 61}, {"large", 4112, 768}} {
		b := newHalfBlock(s.rows, s.cols)
		wrt := make([]int, halfParams)
		for i := range wrt {
			wrt[i] = i
		}
		name := "block of half results " + s.name
		if s.name == "large" {
			name = "large block"
		}
		add(optest.Case{Name: name, Inputs: b.inputs[:halfKey+1], WRT: wrt, Build: b.build})
	}
	for name, f := range map[string]func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node{
		"layer norm": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node { return LayerNorm(x, ns[2], ns[3], 1e-3) },
		"dropout": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node {
			return Dropout(x, DropoutBits(ns[4], 3, 70, 36, 0.75), 0.75)
		},
		"add norm": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node {
			_, norm := AddNorm(AddNormArgs{H: ns[1], X: x, Gamma: ns[2], Beta: ns[3], Eps: 1e-3})
			return norm
		},
		"gather rows": func(x *gorgonia.Node, ns gorgonia.Nodes) *gorgonia.Node { return GatherRows(x, ns[5], 7) },
	} {
		ids := optest.I32s("ids", []int32{9, 3, 3, 0, 5, 8, 8, 8, 1, 2}, 10)
		add(optest.Case{Name: "second gradient of " + name, WRT: []int{0},
			Inputs: []optest.Input{optest.F32s(r, "x", 70, 36), optest.F32s(r, "h", 70, 36), optest.F32s(r, "gamma", 36),
				optest.F32s(r, "beta", 36), key, ids},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				x := arith.Add(ns[0], ns[1])
				return arith.Add(f(x, ns), Tanh(x))
			}})
	}
	for _, s := range []struct {
		name           string
		n, cols, count int
	}{{"", 50, 12, 300}, {" of 768", 9, 768, 70}, {" odd", 3, 31, 200}, {" of one row", 1, 8, 1000},
		{" of many rows", 4000, 4, 20}, {", large", 30522, 768, 32 * 60}} {
		ids := optest.RandomInts(r, s.count, s.n)
		for i := range ids { // most are one of two
			if i%3 > 0 {
				ids[i] = int32(i / 100 % min(2, s.n))
			}
		}
		in := []optest.Input{optest.F32s(r, "table", s.n, s.cols), optest.I32s("ids", ids, s.count)}
		name := "embed" + s.name
		if s.name == ", large" {
			name = "large embed"
		}
		add(optest.Case{Name: name, Inputs: in, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Embed(ns[0], ns[1])
		}})
		add(optest.Case{Name: name + " padded", Inputs: in, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return EmbedPadded(ns[0], ns[1], 0) }})
	}
	x := optest.F32s(r, "x", 120, 64)
	tokens, table := optest.F32s(r, "tokens", 3, 64), optest.F32s(r, "table", 50, 64)
	cases = append(cases,
		optest.Case{Name: "several tokens before", Inputs: []optest.Input{x, tokens}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return PrependToken(ns[0], ns[1], 40) }},
		optest.Case{Name: "positions and more", Inputs: []optest.Input{x, table}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return AddPositions(ns[0], ns[1], 12) }},
		optest.Case{Name: "scale columns of 64", Inputs: []optest.Input{x, optest.F32s(r, "scale", 64)}, WRT: []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleColumns(ns[0], ns[1]) }},
		optest.Case{Name: "scale shift of a part", Inputs: []optest.Input{x, optest.F32s(r, "scale", 160),
			optest.F32s(r, "shift", 160)}, WRT: []int{0, 1, 2},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleShift(ns[0], ns[1], ns[2], 32) }},
		optest.Case{Name: "wide rows", Inputs: []optest.Input{optest.F32s(r, "x", 2, 2500), optest.F32s(r, "scale", 2500)},
			WRT:   []int{0, 1},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return ScaleColumns(ns[0], ns[1]) }},
		optest.Case{Name: "patches of 3", Inputs: []optest.Input{optest.F32s(r, "images", 2, 3, 9, 12)}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Patchify(ns[0], 3) }},
		optest.Case{Name: "l2 normalize of 64", Inputs: []optest.Input{x}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 1e-12) }},
		optest.Case{Name: "l2 normalize of short rows", Inputs: []optest.Input{x}, WRT: []int{0},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return L2Normalize(ns[0], 4.5) }},
		optest.Case{Name: "sinusoids of places", Inputs: []optest.Input{x},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return Sinusoids(ns[0], 7, 36) }},
		optest.Case{Name: "dropout bits of a part", Inputs: []optest.Input{optest.I32s("key", []int32{3, 4, 1000}, 3)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 12345, 33, 70, 0.5) }},
		optest.Case{Name: "dropout bits that keep all", Inputs: []optest.Input{key},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 1, 9, 70, 1) }},
		optest.Case{Name: "dropout bits that keep none", Inputs: []optest.Input{key},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return DropoutBits(ns[0], 1, 9, 70, 1e-9) }},
	)
	for _, n := range []struct {
		name       string
		rows, cols int
	}{{"batch norm of 2 rows", 2, 5}, {"batch norm of 64", 300, 64}, {"batch norm of 260", 40, 260},
		{"large batch norm", 100352, 64}, {"large batch norm of 2048", 1568, 2048}} {
		in := []optest.Input{optest.F32s(r, "x", n.rows, n.cols), optest.F32s(r, "gamma", n.cols), optest.F32s(r, "beta", n.cols),
			optest.F32s(r, "add", n.rows, n.cols)}
		for i := range in[0].Floats() {
			in[0].Floats()[i] += 3 // a mean that is not 0
		}
		add(optest.Case{Name: n.name, Inputs: in[:3], WRT: []int{0, 1, 2}, Build: batchNormThen(false, nil)})
		add(optest.Case{Name: n.name + ", residual, relu", Inputs: in, WRT: []int{0, 1, 2, 3},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node { return batchNormThen(true, ns[3])(ns) }})
		add(optest.Case{Name: n.name + ", relu", Inputs: in[:3], WRT: []int{0, 1, 2}, Build: batchNormThen(true, nil)})
	}
	return cases
}
