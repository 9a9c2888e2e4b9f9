package model

import (
	"context"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// classes is fine-tuning of an image tower for classification: the tower without a head of its own, whose features are its class tokens
// on the unit sphere. Both sides are this tower, so that whatever asks for either side of a score has it; a step encodes the images once.
func classes(cfg config.Config, space space.Space) design {
	one := side{name: "image", proj: "image_proj", frozen: cfg.Model.Image.Freeze, tower: imageTower(cfg, space), head: encoders.Projection{Space: space, Identity: true}}
	return design{image: one, text: one, views: true}
}

// newClasses is the loss over classes of images.
func newClasses(cfg config.Config, o Options) objectives.Classes {
	c, size := cfg.Objective.Classes, cfg.Model.Image.Size
	return objectives.Classes{
		Weight: c.Weight, Smoothing: c.Smoothing, Mix: objectives.Mix{Mixup: c.Mixup, Cutmix: c.Cutmix},
		Head:   encoders.ClassHead{Classes: len(o.Classes), Norm: c.Norm},
		Images: batch.Column{Name: batch.Images, Shape: []int{3, size, size}},
	}
}

// classifying is the compiled computation of the logits of a number of images.
type classifying struct {
	machine *exec.Machine
	inputs  *feed.Inputs
	logits  *gorgonia.Node // (n, K)
}

// Classes returns the names of the classes that the model tells, in the order of their numbers; nil for a model that tells none.
func (p *Pairs) Classes() []string { return p.o.Classes }

// ClassifyColumns are the columns of a batch that Classify reads.
func (p *Pairs) ClassifyColumns() []batch.Column { return p.image.Columns() }

// Classify returns the logits (n, K) of the n images of a batch. The next call overwrites them. A computation is kept for every number
// of images. It ends early with the error of ctx.
func (p *Pairs) Classify(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := p.classifying(b.Rows())
	if err != nil {
		return nil, err
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	a, err := x.machine.Value(x.logits)
	return a.F32, err
}

// classifying returns the computation of n images, built when it is first asked for.
func (p *Pairs) classifying(n int) (x *classifying, err error) {
	if x := p.classifyings[n]; x != nil {
		return x, nil
	}
	defer op.Catch(&err)
	net := newNet(p.params)
	t, root := p.design.image.tower, encoders.NewScope(net.params)
	x = &classifying{inputs: net.inputs}
	tokens := t.Encode(&encoders.Context{}, p.image.scope(root.In(p.design.image.name)), net.towerInputs(t, n, nil), encoders.Want{Classes: true})
	x.logits = newClasses(p.cfg, p.o).Logits(root, tokens.Classes)
	if x.machine, err = net.compileEval(exec.Config{Engine: p.engine}, x.logits); err != nil {
		return nil, err
	}
	if p.classifyings == nil {
		p.classifyings = map[int]*classifying{}
	}
	p.classifyings[n] = x
	return x, nil
}
