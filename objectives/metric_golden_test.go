package objectives

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/similarity"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// goldenWeights hands out the parameters of a golden case, below gssf/.
type goldenWeights struct {
	bench *bench
	of    map[string]goldenArray
	nodes map[string]*gorgonia.Node
}

type goldenArray struct {
	Shape []int
	Data  []float32
}

func (w goldenWeights) Param(name string, _ encoders.Traits, _ encoders.Init, shape ...int) *gorgonia.Node {
	short := name[strings.Index(name, "gssf/")+len("gssf/"):]
	v, ok := w.of[short]
	if !ok || !slices.Equal(v.Shape, shape) {
		w.bench.t.Fatalf("parameter %s %v: the golden has %v", name, shape, v.Shape)
	}
	if w.nodes[short] == nil {
		w.nodes[short] = w.bench.floats(name, v.Data, shape...)
	}
	return w.nodes[short]
}

// TestGoldenMetrics compares the scores of every form of the learned metric, and the gradients of both sides and of
// all parameters, with those of PyTorch (tools/goldens/metric.py).
func TestGoldenMetrics(t *testing.T) {
	for name, golden := range readGolden(t, "metric.json") {
		form, symmetric, _ := strings.Cut(name, " ")
		b := newBench(t)
		w := goldenWeights{b, golden, map[string]*gorgonia.Node{}}
		x, y := b.floats("x", golden["x"].Data, golden["x"].Shape...), b.floats("y", golden["y"].Data, golden["y"].Shape...)
		n, m, c := golden["x"].Shape[0], golden["y"].Shape[0], golden["x"].Shape[1]
		metric := encoders.Metric{Form: form, Blocks: 3, Dim: c, Rank: 2, Symmetric: symmetric != "", Hidden: 7}
		scores := Scores{Params: encoders.NewScope(w), Metric: metric, Space: space.Space{Dim: c, Spheres: 1, Euclid: true}}
		out := scores.Bare(Terms{{Kind: scoring.GSSF, Weight: 1}}, false).Pairs(x, y)
		dy := b.floats("dy", golden["seed"].Data, 1, n*m)
		loss := arith.Sum(similarity.Similarity(layout.Reshape(out, 1, n*m), dy, nil, nil))

		var names []string
		count := 0
		for _, p := range metric.Params(encoders.SimilaritySite) {
			names = append(names, strings.TrimPrefix(p.Name, "gssf/"))
			count += len(golden[names[len(names)-1]].Data)
		}
		if len(names) != len(w.nodes) {
			t.Errorf("%s: Params lists %v, the score asks for %d parameters", name, names, len(w.nodes))
		}
		if want := map[string]int{"diag": 6, "block_diag": 12, "dense": 36, "sparse": 36, "low_rank": 24, "low_rank symmetric": 12, "mlp": 2*7*6 + 2*7}[name]; count != want {
			t.Errorf("%s: %d numbers, want %d", name, count, want)
		}
		wrt := gorgonia.Nodes{x, y}
		for _, p := range names {
			wrt = append(wrt, w.nodes[p])
		}
		grads := check.Get(gorgonia.Grad(loss, wrt...))(t)
		got := b.run(append(gorgonia.Nodes{out}, grads...)...)
		for i, key := range append([]string{"out", "dx", "dy"}, names...) {
			if i > 2 {
				key = "d" + key
			}
			nearGolden(t, name+" "+key, got[i].F32, golden[key].Data)
		}
	}
}

// readGolden reads cases of a file of testdata.
func readGolden(t *testing.T, file string) (cases map[string]map[string]goldenArray) {
	t.Helper()
	raw := check.Get(os.ReadFile("testdata/" + file))(t)
	check.OK(t, json.Unmarshal(raw, &cases))
	return cases
}

// nearGolden compares with numbers of PyTorch, to 1e-5 of the largest.
func nearGolden(t *testing.T, what string, got, want []float32) {
	t.Helper()
	most := 0.0
	for _, v := range want {
		most = math.Max(most, math.Abs(float64(v)))
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i]-v)) <= 1e-5*most) {
			t.Fatalf("%s, %d: got %v, want %v", what, i, got[i], v)
		}
	}
}
