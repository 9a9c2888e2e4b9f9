package model

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// resNets are the networks of tools/goldens/resnet.py.
var resNets = map[string]struct {
	size   int
	resNet encoders.ResNet
}{
	"18": {9, encoders.ResNet{Depth: 18, Width: 2, SmallStem: true}},
	"50": {64, encoders.ResNet{Depth: 50, Width: 2}},
}

// TestGoldenResNet compares residual networks with those of torchvision: tokens, and in training the loss, the gradient
// of every parameter to 1e-4 of its largest element and the running statistics after the pass, with frozen stages and
// batch norms and without; in inference batch norms are folded.
func TestGoldenResNet(t *testing.T) {
	e := newEngine(t)
	for name, network := range resNets {
		g := openGolden(t, "resnet_"+name)
		for variant, change := range map[string]func(*encoders.ResNet){
			"train":  func(*encoders.ResNet) {},
			"stages": func(r *encoders.ResNet) { r.FrozenStages = 2 },
			"norm":   func(r *encoders.ResNet) { r.FrozenNorm = true },
			"eval":   func(*encoders.ResNet) {},
		} {
			if !g.has(variant + "/tokens") {
				continue // which one network is enough for
			}
			m := config.Model{Image: encoders.ImageOptions{Size: network.size, ResNet: network.resNet}}
			change(&m.Image.ResNet)
			t.Run(name+"/"+variant, func(t *testing.T) {
				goldenResNet(t, e, g, encoders.ResNetTower{ResNet: m.Image.Network()}, variant)
			})
		}
	}
}

func goldenResNet(t *testing.T, e *kernel.Engine, g golden, tower encoders.ResNetTower, variant string) {
	const rows, read = 4, 3
	b := newNet(NewParams(1, false))
	store := b.params.params
	in := b.towerInputs(tower, rows, nil)
	var n norms
	context, train := &encoders.Context{}, variant != "eval"
	if train {
		context.Statistics = n.add
	}
	q := tower.Encode(context, encoders.NewScope(b.params).In("image"), in, encoders.Want{Tokens: true})
	if length, width := tower.Shape(); q.Len != length || q.Width != width || q.Begin != 1 {
		t.Errorf("a sequence of %d tokens of width %d, the first %d of them classes", q.Len, q.Width, q.Begin)
	}
	readers := gorgonia.NewMatrix(b.g, gorgonia.Float32, gorgonia.WithShape(read, q.Width), gorgonia.WithName("read"))
	loss := arith.Sum(nn.LinearGELU(q.Tokens, readers, nil))
	check.OK(t, store.seal())
	outputs := append(gorgonia.Nodes{q.Tokens, loss}, n.nodes()...)
	grads := map[string]*gorgonia.Node{}
	if train {
		var names []string
		var wrt gorgonia.Nodes
		for _, p := range store.List() {
			if !p.Frozen {
				names, wrt = append(names, p.Name), append(wrt, b.params.nodes[p.Name])
			}
		}
		list := check.Get(gorgonia.Grad(loss, wrt...))(t)
		for i, g := range list {
			grads[names[i]] = g
		}
		outputs = append(outputs, list...)
	}
	machine := check.Get(exec.Compile(b.g, exec.Config{Engine: e, Outputs: outputs}))(t)
	for _, p := range store.List() {
		g.set(store.Value(p), "param/"+p.Name)
	}
	check.OK(t, b.bindParams(machine))
	for node, name := range map[*gorgonia.Node]string{in[batch.Images]: "images", readers: "read"} {
		check.OK(t, machine.SetInput(node, g.floats(name)))
	}
	check.OK(t, machine.RunAll())
	noneOnHost(t, machine)
	compare := func(what string, node *gorgonia.Node, tolerance float64) {
		v := check.Get(machine.Value(node))(t)
		near(t, what, v.F32, g.floats(variant+"/"+what), tolerance)
	}
	compare("tokens", q.Tokens, 1e-4)
	if !train {
		return
	}
	compare("loss", loss, 1e-5)
	for name, g := range grads {
		compare("grad/"+name, g, 1e-4)
	}
	trained := 0
	for _, info := range g.f.Tensors() {
		if strings.HasPrefix(info.Name, variant+"/grad/") {
			trained++
		}
	}
	if trained != len(grads) {
		t.Errorf("%d parameters have a gradient, %d in the golden", len(grads), trained)
	}
	check.OK(t, n.keep(machine, parallel.Single{}))
	n.move(store, 1)
	for _, p := range store.List() {
		if strings.Contains(p.Name, "running_") && !tower.FrozenNorm {
			near(t, "after/"+p.Name, store.Value(p), g.floats(variant+"/after/"+p.Name), 1e-5)
		}
	}
}
