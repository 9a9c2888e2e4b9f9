package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// sentencePairs is fine-tuning of a text tower on pairs of sentences: that of simcse without a head of its own, and in training
// with the types of tokens where both sentences are one text. A sentence alone is encoded as before, all of the first type.
func sentencePairs(cfg config.Config, o Options, space space.Space) design {
	t := textTower(cfg, o, space)
	one := side{name: "text", proj: "text_proj", frozen: cfg.Model.Text.Freeze, tower: t, head: encoders.Projection{Space: space, Identity: true}}
	if cfg.JointPairs() {
		t.Segments = true
		one.inTraining = t
	}
	return design{image: one, text: one, views: true}
}

// judgedPairs judges pairs of sentences.
type judgedPairs struct{ objectives.SentencePairs }

// newSentencePairs is the loss over pairs of sentences.
func newSentencePairs(cfg config.Config) objectives.SentencePairs {
	c, task := cfg.Objective.SentencePairs, cfg.Data.SentencePairs.Of()
	l := objectives.SentencePairs{Weight: c.Weight, Joint: cfg.JointPairs(), Head: encoders.PairHead{Classes: len(task.Classes), Dropout: c.Dropout}}
	l.Low, l.High = task.Low, task.High
	return l
}

// judged is what is said of n pairs of sentences: (n, classes) or (n, 1).
func (l judgedPairs) judged(p *Pairs, net *net, n int) *gorgonia.Node {
	t, root := p.design.text.trained().(encoders.TextTower), encoders.NewScope(net.params)
	in := net.towerInputs(t, n, nil)
	var said objectives.Side
	if scope := p.text.scope(root.In(p.text.side.name)); l.Joint {
		said.Sequence = t.Encode(&encoders.Context{}, scope, in, encoders.Want{Classes: true})
	} else {
		said = encodeBehind(net, t, scope, &encoders.Context{}, n, in, objectives.Read{Behind: []batch.Text{batch.PositiveText}})
	}
	return l.Outputs(&encoders.Context{}, root, said)
}
