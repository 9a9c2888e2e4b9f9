package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
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

// Classes returns the names of the classes that the model tells, in the order of their numbers; nil for a model that tells none.
func (p *Pairs) Classes() []string { return p.o.Classes }

// judgedImages judges images by a classifier over their class tokens.
type judgedImages struct{ objectives.Classes }

// judged implements judger: logits (n, K).
func (l judgedImages) judged(p *Pairs, net *net, n int) *gorgonia.Node {
	return l.logits(p, net, n, encoders.Tap{})
}

// mapped implements mapper by the tokens that the last block reads, or those that are pooled.
func (l judgedImages) mapped(x *heating, p *Pairs, net *net, n int) *gorgonia.Node {
	return l.logits(p, net, n, p.tap(&p.design.image, p.DefaultBlocks().Image, func(tokens *gorgonia.Node, t int) {
		x.tokens.node, x.t = tokens, t
	}))
}

// logits are those of n images (n, K) with a tap in their tower.
func (l judgedImages) logits(p *Pairs, net *net, n int, tap encoders.Tap) *gorgonia.Node {
	t, root := p.design.image.tower, encoders.NewScope(net.params)
	x := t.Encode(&encoders.Context{}, p.image.scope(root.In(p.design.image.name)).Tapped(tap), net.towerInputs(t, n, nil), encoders.Want{Classes: true})
	return l.Logits(root, x.Classes)
}
