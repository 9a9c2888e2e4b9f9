package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// featureCache makes a step over the pairs of k micro-batches, exactly, in the memory of one
// (GradCache; Gao et al. 2021, section 3): by the chain rule the towers need of the others'
// pairs no more than the gradient of the loss in their own features. The step is three
// methods of Pairs.
//
//	Encode    features of a micro-batch, forward alone
//	Compare   losses over the features of all, their gradients in these
//	Backward  a micro-batch again, forward and backward from its features' gradients
//
// Both passes of a micro-batch are one computation, which Encode runs to the end of its forward
// pass, with one key of dropout and one choice of patches. So they give the same bits.
//
// N pairs of an update, b of a micro-batch, C channels.
type featureCache struct {
	online  *towerPass
	teacher *towerPass   // nil without one
	batch   *batch.Batch // N rows of the columns that losses read
}

// towerPass is the towers and heads of both sides over a micro-batch.
type towerPass struct {
	b         *builder
	machine   *exec.Machine
	sides     []cachedSide
	backward  bool            // there is something to train
	learnable map[string]bool // parameters that it trains
}

// cachedSide is what a pass makes of a side.
type cachedSide struct {
	features *gorgonia.Node // (b, C) in the pass
	input    *gorgonia.Node // (N, C) in the step of the losses
	all      []float32      // (N, C) of all micro-batches
	upstream *gorgonia.Node // (b, C) gradients in the pass; nil in the teacher's
	grads    []float32      // (N, C) of all micro-batches; nil of the teacher
}

// errNoCache says that a model was built without features of several micro-batches.
var errNoCache = errors.New(`model: this model compares the pairs of one micro-batch: set train.accumulate = "features" and train.accumulate_steps above 1 to call Encode, Compare and Backward`)

// newFeatureCache builds the towers apart from the step b of the losses, which reads their
// features as inputs.
func (b *builder) newFeatureCache() (*featureCache, error) {
	r := b.s.Reads
	for _, x := range []objectives.Read{r.Online.Image, r.Online.Text, r.Teacher.Image, r.Teacher.Text} {
		objectives.Need(!x.Tokens && !x.Masked, "train.accumulate",
			`must be "gradients" with a loss that reads tokens: features are all that is kept of other micro-batches`)
	}
	c := &featureCache{}
	s, rows := b.s, b.cfg.RankRows()
	var pass *builder
	side := func(x *side, to *towerPass, teacher bool) objectives.Side {
		p, ctx, names, what := pass.s.Params, pass.s.Student, x.column, "features of all "
		if teacher {
			p, ctx, names, what = pass.s.MomentumParams, pass.s.TeacherContext, x.teacher, "teacher's features of all "
		}
		out := pass.side(x, p, ctx, objectives.Read{Features: true}, names)
		objectives.Need(out.View == nil, "train.accumulate",
			`must be "gradients" with two masked views of an image: one is kept of other micro-batches`)
		f := cachedSide{features: out.Features, all: make([]float32, s.Rows*b.Dim())}
		f.input = s.SharedFloats(what+x.name+"s", f.all, s.Rows, b.Dim())
		if !teacher {
			f.grads = make([]float32, len(f.all))
			f.upstream = pass.s.Unbound("gradients of "+x.name+" features", batch.Float32, rows, b.Dim())
		}
		to.sides = append(to.sides, f)
		on := s.Params
		if teacher {
			on = s.MomentumParams
		}
		return objectives.Side{Sequence: encoders.Sequence{Len: out.Len, Width: out.Width}, Features: f.input,
			Head: x.head, Scope: b.scope(on, x.proj)}
	}
	both := func(teacher bool) (*towerPass, objectives.Sides) {
		pass = b.newBuilder(rows)
		pass.captions()
		to := &towerPass{b: pass, learnable: map[string]bool{}}
		sides := objectives.Sides{Image: side(&b.design.image, to, teacher), Text: side(&b.design.text, to, teacher)}
		objectives.Need(len(pass.norms.list) == 0, "train.accumulate",
			`must be "gradients" with a batch norm, which would see one micro-batch at a time`)
		return to, sides
	}
	c.online, s.Online = both(false)
	if b.design.teacher {
		c.teacher, s.Teacher = both(true)
	}
	return c, nil
}

// differentiated are the features that the losses have gradients in.
func (c *featureCache) differentiated() (list []gradientTo) {
	for _, x := range c.online.sides {
		list = append(list, gradientTo{of: x.input, to: x.grads})
	}
	return list
}

// passes lists the towers' computations.
func (c *featureCache) passes() []*towerPass {
	if c.teacher == nil {
		return []*towerPass{c.online}
	}
	return []*towerPass{c.online, c.teacher}
}

// bytes returns the memory of features and their gradients.
func (c *featureCache) bytes() (n int64) {
	for _, p := range c.passes() {
		for _, x := range p.sides {
			n += 4 * int64(len(x.all)+len(x.grads))
		}
	}
	return n
}

// compile compiles the towers once the step of the losses of p is compiled, which fixes the set
// of parameters, and counts what they take and train with it.
func (c *featureCache) compile(p *Trainer) (err error) {
	t := p.step
	reads := t.columns
	c.batch = batch.New(p.cfg.ComparedRows(), t.columns...)
	for _, x := range c.passes() {
		if err := x.compile(&t.footprint); err != nil {
			return err
		}
		if reads, err = batch.Union(reads, x.b.s.Inputs.Columns()); err != nil {
			return err
		}
		for name := range x.learnable {
			t.learnable[name] = true
		}
	}
	t.columns = reads
	return nil
}

// compile compiles a pass into a machine that takes need already.
func (x *towerPass) compile(need *Footprint) (err error) {
	b := x.b
	c := exec.Config{Engine: b.engine, CheckNaN: b.cfg.Compute.CheckNaN,
		Recompute: exec.Recompute{Blocks: b.blocks.list, Backward: exec.NextID(b.net.g)}}
	if err := x.differentiate(&c); err != nil {
		return err
	}
	for _, s := range x.sides {
		c.Outputs = append(c.Outputs, s.features)
	}
	if x.machine, err = need.compile(b.net, c); err != nil {
		return err
	}
	need.Buffers += x.machine.Memory()
	if err := b.net.bindParams(x.machine); err != nil {
		return err
	}
	if err := x.bindUpstream(0, b.s.Rows*b.Dim()); err != nil {
		return err
	}
	return b.s.Inputs.Bind(x.machine)
}

// bindUpstream ties the gradients of the features of a micro-batch to those that begin at from, n
// values of each side.
func (x *towerPass) bindUpstream(from, n int) error {
	for _, s := range x.sides {
		if s.upstream == nil {
			continue
		}
		if err := x.machine.SetInput(s.upstream, s.grads[from:][:n]); err != nil {
			return err
		}
	}
	return nil
}

// differentiate adds the gradients of what is trained, from those of the features of both sides.
func (x *towerPass) differentiate(c *exec.Config) error {
	var list []gradientTo
	var from, upstream gorgonia.Nodes
	for _, s := range x.sides {
		if s.upstream == nil {
			continue
		}
		more := x.b.net.learned(gradientReaches(x.b.net.g, s.features), x.learnable)
		if len(more) > 0 { // else a frozen tower under a head without parameters
			list, from, upstream = append(list, more...), append(from, s.features), append(upstream, s.upstream)
		}
	}
	if x.backward = len(list) > 0; !x.backward {
		return nil
	}
	grads, err := gorgonia.Backpropagate(from, upstream, nodesOf(list))
	if err != nil {
		return fmt.Errorf("model: differentiating the features: %w", err)
	}
	return bindGradients(c, x.b.params, list, grads)
}

// forward computes the features of a micro-batch and keeps them.
func (x *towerPass) forward(ctx context.Context, s *feed.Step) error {
	if err := x.b.s.Inputs.Fill(x.machine, s); err != nil {
		return err
	}
	if err := x.machine.RunTo(ctx, x.sides[0].features, x.sides[1].features); err != nil {
		return err
	}
	for _, side := range x.sides {
		f, err := x.machine.Value(side.features)
		if err != nil {
			return err
		}
		copy(side.all[s.Micro*len(f.F32):], f.F32)
	}
	return nil
}

// Encode computes the features of a micro-batch and keeps them, with its rows of the columns that
// losses read. It ends early with the error of ctx.
func (p *Trainer) Encode(ctx context.Context, s *feed.Step) error {
	if p.cache == nil {
		return errNoCache
	}
	b, to := s.Batch.Rows(), p.cache.batch
	for i := range b {
		to.Row(s.Micro*b + i).Copy(s.Batch.Row(i))
	}
	for _, x := range p.cache.passes() {
		if err := x.forward(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Compare computes the losses over the features of all micro-batches, which Encode has kept, with
// the gradients of the losses' own parameters in Params.Grads; those of the towers are 0 there. It
// changes no state, as Step does not, and draws what a step over one batch of all pairs
// draws. s has no batch. The result is reused by the next call.
func (p *Trainer) Compare(ctx context.Context, s *feed.Step) (*Result, error) {
	if p.cache == nil {
		return nil, errNoCache
	}
	clear(p.params.Grads())
	all := *s
	all.Batch = p.cache.batch
	if err := p.step.inputs.Fill(p.step.machine, &all); err != nil {
		return nil, err
	}
	return p.run(ctx, &all)
}

// Backward computes the gradients of towers and heads of a micro-batch, which Encode has seen
// before Compare, in Params.Grads; those of other parameters are not touched.
func (p *Trainer) Backward(ctx context.Context, s *feed.Step) error {
	if p.cache == nil {
		return errNoCache
	}
	x := p.cache.online
	if !x.backward {
		return nil
	}
	if err := x.b.s.Inputs.Fill(x.machine, s); err != nil {
		return err
	}
	n := s.Batch.Rows() * p.Dim()
	if err := x.bindUpstream(s.Micro*n, n); err != nil {
		return err
	}
	return x.machine.Run(ctx)
}
