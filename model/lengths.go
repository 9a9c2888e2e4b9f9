package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
)

// lengths are the training steps of a model: one of data.tokens places a text, and with data.token_lengths one for each
// of those, for batches whose texts fit. They share parameters, gradients, losses' state and the memory of results, and
// differ in the places of their text towers alone.
type lengths struct {
	steps []*trainStep // the longest first
	room  *exec.Room   // where their results lie; nil of one step
	short feed.Step    // what a shorter one is filled from

	connector *Params       // of objective.mafa, which all of them read
	took      time.Duration // to build the shorter ones

	own [1]int32 // the longest text here
	all []int32  // and of each process
}

// newLengths begins the steps of a configuration, of which the one with data.tokens places is built.
func newLengths(cfg config.Config) lengths {
	if len(cfg.TokenLengths()) == 0 {
		return lengths{}
	}
	return lengths{room: &exec.Room{}}
}

// buildShorter builds and compiles the steps of data.token_lengths, the longest first: memory that is shared does not
// grow then.
func (p *Trainer) buildShorter() error {
	full := p.step
	p.steps = []*trainStep{full}
	if p.room == nil {
		return nil
	}
	if len(p.o.Losses) > 0 { // which are built once
		return p.oneLength("must be empty with losses of model.Options")
	}
	begin := time.Now()
	for _, l := range slices.Backward(p.cfg.Data.TokenLengths) {
		s, err := p.shorter(l)
		if err != nil {
			return err
		}
		p.steps = append(p.steps, s)
		if !slices.Equal(p.orderOf(s), p.orderOf(full)) {
			return fmt.Errorf("model: data.token_lengths: the step of %d places completes gradients in another order than that of %d", l, p.cfg.Data.Tokens)
		}
	}
	p.took = time.Since(begin)
	return nil
}

// Lengths returns the places of a text that training steps are compiled for, rising, and how long that took of those
// of data.token_lengths; nil where all texts have data.tokens places.
func (p *Trainer) Lengths() (places []int, took time.Duration) {
	if len(p.steps) <= 1 {
		return nil, 0
	}
	return append(slices.Clone(p.cfg.Data.TokenLengths), p.cfg.Data.Tokens), p.took
}

// shorter builds the step for texts of l places.
func (p *Trainer) shorter(l int) (*trainStep, error) {
	m, x := *p.Model, *p
	x.Model, x.step = &m, nil
	read := false
	for _, s := range []*side{&m.design.image, &m.design.text} {
		for _, t := range []*encoders.Tower{&s.tower, &s.inTraining} {
			if y, ok := (*t).(encoders.Shorter); ok {
				if !y.Shortens() {
					return nil, p.oneLength("must be empty with a text tower that reads padding, or a token behind it")
				}
				*t, read = y.Shorter(l), true
			}
		}
	}
	if !read {
		return nil, p.oneLength(fmt.Sprintf("must be empty with the text tower %T, which has one length",
			m.design.text.tower))
	}
	b, err := x.assemble()
	if err == nil {
		err = b.compile()
	}
	if err != nil {
		return nil, err
	}
	var narrow []batch.Column
	for _, c := range x.step.columns {
		if full, _ := batch.Find(p.step.columns, c.Name); !full.Equal(c) {
			narrow = append(narrow, c)
		}
	}
	x.step.places, x.step.batch = l, batch.New(p.cfg.RankRows(), narrow...)
	return x.step, nil
}

// oneLength refuses data.token_lengths.
func (p *Trainer) oneLength(msg string) error {
	return config.Errors{{Path: "data.token_lengths", Value: p.cfg.Data.TokenLengths, Msg: msg}}
}

// fit makes the step of the fewest places that hold the texts of a batch, on all processes, the one that runs, and
// returns what it is filled from.
func (p *Trainer) fit(s *feed.Step) (*feed.Step, error) {
	if len(p.steps) <= 1 {
		return s, nil
	}
	p.own[0] = longest(s.Batch)
	var err error
	if p.all, err = p.o.Group.GatherInts(p.all[:0], p.own[:]); err != nil {
		return nil, err
	}
	to := p.stepFor(slices.Max(p.all))
	if to != p.step {
		to.take(p.step)
		p.step = to
	}
	if to.batch == nil {
		return s, nil
	}
	to.batch.Narrow(s.Batch)
	p.short = *s
	p.short.Batch = to.batch
	return &p.short, nil
}

// stepFor is the step of the fewest places that hold texts of n tokens.
func (p *Trainer) stepFor(n int32) *trainStep {
	to := p.steps[0]
	for _, s := range p.steps[1:] {
		if int(n) <= s.places {
			to = s
		}
	}
	return to
}

// longest is the number of tokens of the longest text of a batch.
func longest(b *batch.Batch) (most int32) {
	for _, name := range []string{batch.Lengths, batch.SecondLengths, batch.ThirdLengths} {
		for _, n := range b.Ints(name) {
			most = max(most, n)
		}
	}
	return most
}

// take takes over what the micro-batches of an update so far have left with another step.
func (t *trainStep) take(from *trainStep) {
	for i := range t.norms.list {
		a, b := &t.norms.list[i], &from.norms.list[i]
		a.kept, b.kept = b.kept, a.kept
	}
	t.agreement.kept, from.agreement.kept = from.agreement.kept, t.agreement.kept
	if t.samples != nil {
		t.samples.all = from.samples.all
	}
}
