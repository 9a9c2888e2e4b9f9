package encoders

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// shapesOnly is Weights without values.
type shapesOnly struct {
	g     *gorgonia.ExprGraph
	sizes map[string]int
	given map[string]*gorgonia.Node
	locks map[string]bool
}

func newShapesOnly() *shapesOnly {
	return &shapesOnly{gorgonia.NewGraph(), map[string]int{}, map[string]*gorgonia.Node{}, map[string]bool{}}
}

func (s *shapesOnly) Param(name string, t Traits, _ Init, shape ...int) *gorgonia.Node {
	if s.given[name] == nil {
		s.given[name] = gorgonia.NewTensor(s.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
		s.sizes[name], s.locks[name] = tensor.Shape(shape).TotalSize(), t.Locked
	}
	return s.given[name]
}

// TestResNetSizes: parameters are as many as torchvision's networks have without their classifiers, and Sizes counts those of the
// convolutions; the last layer has the published places.
func TestResNetSizes(t *testing.T) {
	for depth, want := range map[int]int{18: 11_176_512, 34: 21_284_672, 50: 23_508_032, 101: 42_500_160} {
		r := ResNet{Size: 224, Depth: depth, Width: 64}
		s := newShapesOnly()
		images := gorgonia.NewTensor(s.g, tensor.Float32, 4, gorgonia.WithShape(1, 3, 224, 224), gorgonia.WithName("images"))
		q := ResNetTower{r}.Encode(&Context{}, NewScope(s), Inputs{batch.Images: images}, Want{Tokens: true, Classes: true})
		learned, convolutions := 0, 0
		for name, n := range s.sizes {
			if !strings.Contains(name, "running_") {
				learned += n
			}
			if strings.Contains(name, "conv") || strings.HasSuffix(name, "downsample/0/weight") {
				convolutions += n
			}
		}
		weights, locked, kept := r.Sizes()
		if learned != want || int(weights) != convolutions || locked != 0 {
			t.Errorf("ResNet-%d has %d parameters, want %d; %d of convolutions, Sizes says %d, %d of them locked", depth, learned, want, convolutions, weights, locked)
		}
		if d := map[bool]int{true: 512, false: 2048}[depth < 50]; !q.Tokens.Shape().Eq(tensor.Shape{50, d}) || !q.Classes.Shape().Eq(tensor.Shape{1, d}) {
			t.Errorf("ResNet-%d gives tokens %v and classes %v", depth, q.Tokens.Shape(), q.Classes.Shape())
		}
		if depth == 50 && kept != 11_113_984 { // 11.1 million activations, Radosavovic et al. 2020, table 2
			t.Errorf("ResNet-50 keeps %d values of an image", kept)
		}
	}
	for size, want := range map[int]int{32: 16, 31: 16, 33: 25, 1: 1} {
		if got := (ResNet{Size: size, Depth: 18, Width: 1, SmallStem: true}).Places(); got != want {
			t.Errorf("images of %d have %d places, want %d", size, got, want)
		}
	}
}

// TestResNetFrozen: stages are locked from the stem on, or all batch norms.
func TestResNetFrozen(t *testing.T) {
	for _, c := range []struct {
		r    ResNet
		want map[string]bool
	}{
		{ResNet{FrozenStages: 1}, map[string]bool{"conv1/weight": true, "bn1/bias": true, "layer1/00/conv1/weight": false}},
		{ResNet{FrozenStages: 3}, map[string]bool{"layer2/01/bn2/running_var": true, "layer2/00/downsample/0/weight": true, "layer3/00/conv1/weight": false}},
		{ResNet{FrozenStages: 5}, map[string]bool{"layer4/01/conv2/weight": true}},
		{ResNet{FrozenNorm: true}, map[string]bool{"conv1/weight": false, "bn1/weight": true, "layer4/00/downsample/1/bias": true}},
	} {
		c.r.Size, c.r.Depth, c.r.Width, c.r.SmallStem = 8, 18, 2, true
		s := newShapesOnly()
		images := gorgonia.NewTensor(s.g, tensor.Float32, 4, gorgonia.WithShape(2, 3, 8, 8), gorgonia.WithName("images"))
		heard := 0
		ResNetTower{c.r}.Encode(&Context{Statistics: func(Moments, ...Moments) { heard++ }}, NewScope(s), Inputs{batch.Images: images}, Want{Classes: true})
		for name, want := range c.want {
			if got, ok := s.locks[name]; !ok || got != want {
				t.Errorf("%+v: %s is locked %v", c.r, name, got)
			}
		}
		if want := map[int]int{0: 0, 1: 19, 3: 10, 5: 0}[c.r.FrozenStages]; heard != want {
			t.Errorf("%+v: %d batch norms tell of their statistics, want %d", c.r, heard, want)
		}
	}
}

// TestResNetStart: convolutions start as PyTorch's kaiming_normal_ with fan_out, and with ZeroInitResidual the last batch norm of a
// block at 0.
func TestResNetStart(t *testing.T) {
	s := newStore(0)
	images := s.floats("images", 1, 3, 8, 8)
	ResNetTower{ResNet{Size: 8, Depth: 18, Width: 16, SmallStem: true, ZeroInitResidual: true}}.Encode(&Context{}, NewScope(s), Inputs{batch.Images: images}, Want{Classes: true})
	for name, want := range map[string]float32{"bn1/weight": 1, "layer1/00/bn1/weight": 1, "layer1/00/bn2/weight": 0, "layer4/01/bn2/weight": 0, "layer2/00/downsample/1/weight": 1} {
		if got := s.values[name]; len(got) == 0 || got[0] != want {
			t.Errorf("%s starts at %v, want %v", name, got[:min(1, len(got))], want)
		}
	}
	var sum float64
	w := s.values["layer4/00/conv1/weight"] // (128, 64, 3, 3)
	for _, v := range w {
		sum += float64(v) * float64(v)
	}
	if got, want := sum/float64(len(w)), 2.0/(9*128); !(math.Abs(got/want-1) <= .05) {
		t.Errorf("convolutions start with variance %g, want %g", got, want)
	}
}

// TestResNetGroups: with groups each of them is encoded as a batch of its own, in the order of a shuffle, and running statistics
// hear of all; what comes out is in the order of the images.
func TestResNetGroups(t *testing.T) {
	const n, size = 6, 8
	tower := ResNetTower{ResNet{Size: size, Depth: 18, Width: 2, SmallStem: true}}
	pixels, each := normals(4, n*3*size*size), 3*size*size
	order, back := []int32{4, 1, 5, 0, 2, 3}, []int32{3, 1, 4, 5, 0, 2}
	encode := func(rows []int32, groups int, shuffled bool) []float32 {
		s, tower := newStore(.1), tower
		tower.ShuffleGroups = groups
		images := s.floats("images", len(rows), 3, size, size)
		var x []float32
		for _, r := range rows {
			x = append(x, pixels[int(r)*each:][:each]...)
		}
		inputs := map[*gorgonia.Node]any{images: x}
		norms := 0
		c := &Context{Statistics: func(running Moments, of ...Moments) {
			norms++
			if len(of) != groups {
				t.Errorf("%d groups tell of their statistics, want %d", len(of), groups)
			}
		}}
		if shuffled {
			c.Shuffle = func(n int) (*gorgonia.Node, *gorgonia.Node) {
				o, b := s.ints("order", n), s.ints("back", n)
				inputs[o], inputs[b] = order, back
				return o, b
			}
		}
		q := tower.Encode(c, NewScope(s), Inputs{batch.Images: images}, Want{Tokens: true})
		if norms != 20 {
			t.Errorf("%d batch norms tell of their statistics, want 20", norms)
		}
		return s.run(t, q.Tokens, inputs)
	}
	all := []int32{0, 1, 2, 3, 4, 5}
	row := 2 * 8 * (2) // tokens of an image: 1 mean and 1 place of 16 channels
	first, second := encode(all[:3], 1, false), encode(all[3:], 1, false)
	got := encode(all, 2, false)
	nearly(t, "consecutive groups", got, append(first, second...))
	first, second = encode(order[:3], 1, false), encode(order[3:], 1, false)
	got = encode(all, 2, true)
	shuffled := append(first, second...)
	for i, at := range back {
		nearly(t, "shuffled groups", got[i*row:][:row], shuffled[int(at)*row:][:row])
	}
}

// nearly compares values to rounding.
func nearly(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || !(math.Abs(float64(got[i]-want[i])) <= 1e-5) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// TestResNetRefuses: sizes that no network has are told.
func TestResNetRefuses(t *testing.T) {
	for want, r := range map[string]ResNet{
		"depth must be 18, 34, 50 or 101 (got 20)": {Size: 8, Depth: 20, Width: 2},
		"want a width and a size of at least 1":    {Size: 8, Depth: 18},
		"frozen stages must be 0 to 5":             {Size: 8, Depth: 18, Width: 2, FrozenStages: 6},
		"want images (B, 3, 9, 9)":                 {Size: 9, Depth: 18, Width: 2},
		"2 groups must divide the images":          {Size: 8, Depth: 18, Width: 2, ShuffleGroups: 2},
	} {
		err := func() (err error) {
			defer op.Catch(&err)
			s := newShapesOnly()
			images := gorgonia.NewTensor(s.g, tensor.Float32, 4, gorgonia.WithShape(3, 3, 8, 8), gorgonia.WithName("images"))
			ResNetTower{r}.Encode(&Context{Statistics: func(Moments, ...Moments) {}}, NewScope(s), Inputs{batch.Images: images}, Want{Classes: true})
			return nil
		}()
		check.Error(t, err, want)
	}
}

// TestCLIPResNetSizes: CLIP's RN50 has as many parameters as open_clip's image tower, 38,316,896, and a token of an image
// is as wide as what its pool gives; Sizes counts the weights of its convolutions and of its pool.
func TestCLIPResNetSizes(t *testing.T) {
	n := ConvNet{Size: 224, Activation: "relu", Gate: "sigmoid", Eps: BatchNormEps, PoolHeads: 32, PoolWidth: 1024,
		Blocks: []string{"conv k3 s2 c32", "conv k3 s1 c32", "conv k3 s1 c64", "mean k2"}}
	for stage, blocks := range []int{3, 4, 6, 3} {
		for i := range blocks {
			kind := "rb k3 s1"
			if stage > 0 && i == 0 {
				kind = "ra k3 s2"
			}
			n.Blocks = append(n.Blocks, fmt.Sprintf("%s e%d c%d", kind, 64<<stage, 256<<stage))
		}
	}
	s := newShapesOnly()
	images := gorgonia.NewTensor(s.g, tensor.Float32, 4, gorgonia.WithShape(1, 3, 224, 224), gorgonia.WithName("images"))
	q := ConvNetTower{n}.Encode(&Context{}, NewScope(s), Inputs{batch.Images: images}, Want{Tokens: true, Classes: true})
	learned, matrices := 0, 0
	for name, k := range s.sizes {
		if !strings.Contains(name, "running_") {
			learned += k
		}
		if strings.HasSuffix(name, "/weight") && !strings.Contains(name, "_norm/") {
			matrices += k
		}
	}
	if weights, _, _ := n.Sizes(); learned != 38_316_896 || int(weights) != matrices {
		t.Errorf("%d parameters; %d in matrices, Sizes says %d", learned, matrices, weights)
	}
	if !q.Tokens.Shape().Eq(tensor.Shape{50, 1024}) || !q.Classes.Shape().Eq(tensor.Shape{1, 1024}) || n.Places() != 49 {
		t.Errorf("tokens %v, classes %v, %d places", q.Tokens.Shape(), q.Classes.Shape(), n.Places())
	}
	if n.Size = 100; n.even() {
		t.Error("means of places that are no whole windows are taken")
	}
}
