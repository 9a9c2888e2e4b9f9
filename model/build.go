package model

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// teacherSites keeps the teacher's dropout masks apart from the student's: no tower
// has that many dropout places.
const teacherSites = 1 << 16

// trainStep is the compiled training step.
type trainStep struct {
	outcome
	inputs    *feed.Inputs
	losses    []objectives.Loss
	columns   []batch.Column // of a batch that the step reads
	keys      keyNodes
	norms     norms
	agreement agreement
	samples   *boundarySamples // nil unless an interaction learns from some
	places    int              // of a text, where the batches of a loader have more
	batch     *batch.Batch     // the first places of those; nil: the step reads them as they are
}

// builder is a training step under construction.
type builder struct {
	*Trainer
	net    *net
	s      *objectives.Step
	blocks blocks // of the student, to compute again in the backward pass
	judge  *judge // of hard negatives, or nil
	norms  norms  // of the student
}

// buildStep builds and compiles the training step.
func (p *Trainer) buildStep() (err error) {
	defer op.Catch(&err)
	b, err := p.assemble()
	if err != nil {
		return err
	}
	if err := b.compile(); err != nil {
		return err
	}
	if err := p.buildShorter(); err != nil || p.cache == nil {
		return err
	}
	return p.cache.compile(p)
}

// assemble builds the training step: the online sides, the teacher's, then one loss after the other.
func (p *Trainer) assemble() (b *builder, err error) {
	defer op.Catch(&err)
	b = p.newBuilder(p.cfg.ComparedRows())
	p.step = &trainStep{inputs: b.s.Inputs, losses: newLosses(p.cfg, p.o)}
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.Preparer); ok {
			x.Prepare(b.s)
		}
	}
	if p.cfg.AccumulatesFeatures() {
		if p.cache, err = b.newFeatureCache(); err != nil {
			return nil, err
		}
	} else {
		b.encode()
	}
	if err := b.addLosses(); err != nil {
		return nil, err
	}
	b.agree()
	if err := b.checkAdapters(); err != nil {
		return nil, err
	}
	return b, b.checkTrained()
}

// addLosses builds the losses and what enters the queue.
func (b *builder) addLosses() error {
	t := b.step
	for _, l := range t.losses {
		b.s.Add(l)
	}
	t.parts = b.s.Parts()
	var losses gorgonia.Nodes
	var weights []float32
	for _, x := range t.parts {
		if !x.Measure {
			n := x.Node
			if x.Share != nil {
				n = arith.MulScalar(n, x.Share)
			}
			losses, weights = append(losses, n), append(weights, float32(x.Weight))
		}
	}
	if len(losses) == 0 {
		return fmt.Errorf("model: every objective has weight 0: set objective.itc.weight, objective.itm.weight or objective.mlm.weight")
	}
	if b.queue != nil {
		t.keys = b.design.keys(b.s)
		objectives.Need(t.keys.image != nil, "queue",
			"needs the teacher: set momentum.enabled = true, or queue.size = 0")
	}
	t.loss = arith.WeightedSum(weights, losses...)
	return nil
}

// mostLogits is how many logits of a contrast are held at once, 256 MiB of float32.
var mostLogits = 1 << 26

// tileFrom is objectives.Step.TileFrom: the tiles have no kernel for the CUDA device.
func tileFrom(e exec.Engine) int {
	if onDevice(e) != nil {
		return 0
	}
	return mostLogits + 1
}

// newBuilder starts a step of so many rows with what it has before the towers.
func (p *Trainer) newBuilder(rows int) *builder {
	cfg, obj, h, n := p.cfg, p.cfg.Objective, newHost(p.cfg, p.o), newNet(p.params)
	v := h.Config
	on, momentum := encoders.NewScope(n.params), encoders.NewScope(n.momentum)
	b := &builder{Trainer: p, net: n}
	if cfg.Compute.Recompute {
		on = on.Marked(b.blocks.mark(n.g))
	}
	s := &objectives.Step{
		Inputs: n.inputs, Rows: rows, Ranks: p.ranks(), Seed: cfg.Run.Seed, Params: on, MomentumParams: momentum,
		Student: &encoders.Context{}, Scores: objectives.NewScores(v, p.design.space, on, momentum),
		Host: h, Reference: p.o.Reference, ImagePool: p.o.ImagePool, TextPool: p.o.TextPool,
		Uniform:       obj.MAFA.Uniform,
		Relabelling:   objectives.Relabelling{Above: obj.MAFA.PositiveAbove, Below: obj.MAFA.NegativeBelow},
		NegativeTerms: objectives.NegativeTerms(v), PairTerms: objectives.PairTerms(v, p.design.space),
		TileFrom: tileFrom(p.engine), Dims: obj.Matryoshka.Dims, Interaction: p.design.interaction, AllTokens: cfg.Model.Interaction.ClassTokens,
		Values: func(name string) objectives.Values { return values{p.params, name} },
	}
	b.s, s.Scores.Context = s, s.Student
	if p.design.teacher {
		s.TeacherContext = &encoders.Context{}
		ramp := obj.Distill.Ramp()
		s.Distill = &ramp
	}
	if p.teacher != nil {
		s.ScoreTeacher = p.teacher.taught()
	}
	if p.queue != nil || p.design.teacher {
		s.Memory = &past{p}
	}
	if obj.ITC.Positives == "id" {
		s.IDs = s.Column(batch.Column{Name: batch.IDs, Type: batch.Int32}, s.Rows)
	}
	if p.o.Group.Size() > 1 {
		s.Student.Group = p.o.Group
		if s.TeacherContext != nil {
			s.TeacherContext.Group = p.o.Group
		}
	}
	s.Student.Statistics = b.norms.add
	b.teacherNorms()
	b.dropout()
	b.patches()
	b.regions()
	b.samples()
	if f := p.design.fusion; f != nil {
		textLen, _ := p.design.text.tower.Shape()
		imageLen, _ := p.design.image.tower.Shape()
		s.Fusion = &objectives.Fusion{
			BERT: *f, Params: b.tuned(b.scope(on, "text"), s.Student),
			MomentumParams: b.tuned(b.scope(momentum, "text"), s.TeacherContext),
			TextLen:        textLen, ImageLen: imageLen,
		}
	}
	if p.o.Connector != nil && obj.ITM.On() {
		if p.connector == nil {
			p.connector = readParams(p.o.Connector.From)
		}
		b.judge = newJudge(p.o.Connector, p.connector, n.g)
		s.Judge = b.judge.logits
	}
	return b
}

// scope is the scope of a tower or head, whose parameters have momentum copies where there is a
// teacher.
func (b *builder) scope(s encoders.Scope, name string) encoders.Scope {
	return s.As(encoders.Traits{Momentum: b.design.teacher}).In(name)
}

// tuned gives a tower or fusion layers of the step the tuning of the configuration.
func (b *builder) tuned(s encoders.Scope, c *encoders.Context) encoders.Scope {
	return tuned(b.cfg.Model, s, c)
}

// dropout gives the towers this step's key of dropout masks.
func (b *builder) dropout() {
	m := b.cfg.Model
	if m.Text.Dropout == 0 && m.Heads.Dropout == 0 && !b.s.Has(section.TowerDropout) && !b.s.Has(section.Dropout) {
		return
	}
	key := b.s.Ints("dropout key", func(f *feed.Step, dst []int32) error {
		k := rng.New(b.s.Seed, rng.Dropout, f.Stream()).Uint64()
		dst[0], dst[1] = int32(uint32(k)), int32(uint32(k>>32))
		return nil
	}, 2)
	b.s.Student.DropoutKey = key
	b.share(b.s.Student)
	if b.s.HasTeacher() && b.cfg.Momentum.Dropout {
		b.s.TeacherContext.DropoutKey = key
		b.s.TeacherContext.SkipSites(teacherSites)
		b.share(b.s.TeacherContext)
	}
}

// share tells the dropout of towers which rows of the global batch this process has.
func (b *builder) share(c *encoders.Context) {
	g := b.o.Group
	if g.Size() == 1 {
		return
	}
	c.Rows = b.s.Rows
	c.Share = b.s.Ints("rank", func(_ *feed.Step, dst []int32) error {
		dst[0], dst[1] = int32(g.Rank()), int32(g.Size())
		return nil
	}, 2)
}

// ranks are the processes that the losses of a step compare their rows with.
func (p *Trainer) ranks() objectives.Ranks {
	if p.o.Group.Size() == 1 {
		return objectives.Ranks{}
	}
	c := p.cfg.Parallel
	return objectives.Ranks{Group: p.o.Group, Local: c.Contrast == config.OfOwnRank, LocalNegatives: c.LocalNegatives()}
}

// patches lets the online side see a share of the patches of an image.
func (b *builder) patches() {
	im := b.cfg.Model.Image
	if b.cfg.Has(section.Stored) || !im.LeavesPatchesOut() {
		return
	}
	views := 0
	b.s.Student.Patches = func(n, tokens, classes int) (*gorgonia.Node, int) {
		views++
		name, kept, of := fmt.Sprintf("%s/%d", rng.Patches, views), im.Kept(), b.shareOf(n)
		return b.s.Ints(name, func(f *feed.Step, dst []int32) error {
			of.take(dst, n, tokens, func(all []int32) {
				keepRows(rng.New(b.s.Seed, name, f.Stream()), all, n*of.ranks, tokens, classes, kept)
			})
			return nil
		}, n*(classes+kept)), kept
	}
}

// encode runs the towers and heads of both sides, online and of the teacher.
func (b *builder) encode() {
	d, s, r := &b.design, b.s, b.s.Reads
	b.captions()
	s.Online.Image = b.side(&d.image, s.Params, s.Student, r.Online.Image, d.image.column)
	s.Online.Text = b.side(&d.text, s.Params, s.Student, r.Online.Text, d.text.column)
	b.crops()
	if !d.teacher {
		return
	}
	s.Teacher.Image = b.side(&d.image, s.MomentumParams, s.TeacherContext, r.Teacher.Image, d.image.teacher)
	s.Teacher.Text = b.side(&d.text, s.MomentumParams, s.TeacherContext, r.Teacher.Text, d.text.teacher)
}

// captions makes the inputs of a text tower, unless a loss has made them.
func (b *builder) captions() {
	if t, ok := b.design.text.trained().(encoders.TextTower); ok && b.s.Captions.Clean == nil {
		b.s.Captions.Clean = b.net.towerInputs(t, b.s.Rows, nil)
	}
}

// side runs a tower and its head as far as losses read them.
func (b *builder) side(x *side, p encoders.Scope, c *encoders.Context, r objectives.Read,
	names map[string]string) objectives.Side {
	if b.design.views && !r.Features {
		return objectives.Side{}
	}
	tower, in := x.trained(), b.s.Captions.Clean
	if _, texts := tower.(encoders.TextTower); !texts {
		in = b.net.towerInputs(tower, b.s.Rows, names)
		if r.Second {
			in = b.net.withSecond(tower, b.s.Rows, in)
		}
	}
	if x.kept {
		b.ask(x)
	}
	scope, context := b.scope(p, x.name), c
	if x.frozen {
		scope = scope.As(encoders.Traits{Locked: true})
		context = &encoders.Context{Patches: c.Patches, Regions: c.Regions, Masks: c.Masks}
	} else {
		scope = b.tuned(scope, c)
	}
	out := b.tower(tower, scope, context, in, r)
	out.Head, out.Scope = x.head, b.scope(p, x.proj)
	if out.Classes != nil {
		out.Features = x.head.Project(c, out.Scope, out.Classes) // (B, C)
	}
	if out.Second != nil {
		out.View = x.head.Project(c, out.Scope, out.Second) // (B, C)
	}
	return out
}

// tower runs a tower over the batch, and over masked captions where they are read: with
// one class token, which is the first, in one pass for both. Masked captions have one class token always:
// nothing reads more of theirs.
func (b *builder) tower(t encoders.Tower, p encoders.Scope, c *encoders.Context, in encoders.Inputs,
	r objectives.Read) (x objectives.Side) {
	if text, ok := t.(encoders.TextTower); ok && r.Tokens && r.Masked && text.FirstIsClass() {
		x.Sequence = t.Encode(c, p, b.s.Captions.All, encoders.Want{Tokens: true}) // (2B*L, D)
		n := b.s.Rows * x.Len
		x.Classes, x.Lengths = x.First(b.s.Rows), in[batch.Lengths] // (B, D)
		x.Masked = layout.StridedRows(x.Sequence.Tokens, n, 1, n)   // (B*L, D)
		return x
	}
	if text, ok := t.(encoders.TextTower); ok && len(r.Behind) > 0 {
		return encodeBehind(b.net, text, p, c, b.s.Rows, in, r)
	}
	x.Sequence = t.Encode(c, p, in, encoders.Want{Tokens: r.Tokens, Classes: b.design.interaction == nil || r.Features})
	if r.Second && x.Classes != nil {
		x.Classes = layout.StridedRows(x.Classes, 0, 1, b.s.Rows*t.Classes()) // (B*m, D) of the first pictures
	}
	if !r.Masked {
		return x
	}
	x.Masked = t.Encode(c, p, b.s.Captions.Masked, encoders.Want{Tokens: true}).Tokens // (B*L, D)
	if r.Tokens {
		x.Tokens = layout.ConcatRows(x.Tokens, x.Masked) // (2B*L, D)
	}
	return x
}

// encodeBehind runs a text tower over the texts of rows of a batch, in, and those of r.Behind, in one pass.
func encodeBehind(n *net, t encoders.TextTower, p encoders.Scope, c *encoders.Context, rows int, in encoders.Inputs,
	r objectives.Read) (x objectives.Side) {
	ids, lengths := gorgonia.Nodes{in[batch.Tokens]}, gorgonia.Nodes{in[batch.Lengths]}
	for _, text := range r.Behind {
		more := in
		if text != batch.OwnText {
			more = n.towerInputs(t, rows, map[string]string{batch.Tokens: text.Tokens, batch.Lengths: text.Lengths})
		}
		ids, lengths = append(ids, more[batch.Tokens]), append(lengths, more[batch.Lengths])
	}
	all := encoders.Inputs{batch.Tokens: layout.ConcatInts(ids...),
		batch.Lengths: layout.ConcatInts(lengths...)} // ((1+k)B*L), ((1+k)B)
	x.Sequence = t.Encode(c, p, all, encoders.Want{Tokens: r.Tokens, Classes: true})
	own := rows * t.Classes()
	x.Behind = layout.StridedRows(x.Classes, own, 1, x.Classes.Shape()[0]-own) // (kB, D)
	x.Classes, x.Lengths = layout.StridedRows(x.Classes, 0, 1, own), in[batch.Lengths]
	if r.Tokens {
		x.Tokens = layout.StridedRows(x.Tokens, 0, 1, rows*x.Len) // (B*L, D)
	}
	return x
}

// compile compiles the step and binds its inputs.
func (b *builder) compile() error {
	t := b.step
	c := exec.Config{Engine: b.engine, CheckNaN: b.cfg.Compute.CheckNaN, RunOn: b.o.Group.Size() > 1,
		Room: b.room, Recompute: exec.Recompute{Blocks: b.blocks.list}}
	t.norms = b.norms
	c.Outputs = slices.Concat(t.keys.nodes(), t.norms.nodes(), t.agreement.nodes())
	if t.samples != nil {
		c.Outputs = append(c.Outputs, t.samples.node)
	}
	need := b.params.footprint()
	if b.cfg.Train.AccumulateSteps > 1 {
		need.Gradients *= 2 // with their sum
	}
	need.Queue, need.Plans = estimate{b.Model}.queueBytes(), estimate{b.Model}.plansBytes()
	if b.judge != nil {
		need.Connector = b.judge.params.bytes()
	}
	if b.cache != nil {
		need.Features, t.features = b.cache.bytes(), b.cache.differentiated()
	}
	if err := t.outcome.compile(b.net, need, c); err != nil {
		return err
	}
	if j := b.judge; j != nil {
		if err := j.load(); err != nil {
			return err
		}
		if err := b.params.held.keep(b.engine, j.params.list); err != nil {
			return err
		}
		if err := j.nodes.bindTo(t.machine); err != nil {
			return err
		}
	}
	var err error
	if t.columns, err = batch.Union(b.s.Inputs.Columns(),
		[]batch.Column{{Name: batch.IDs, Type: batch.Int32}}); err != nil {
		return err
	}
	return b.s.Inputs.Bind(t.machine)
}

// values is the memory of a parameter by its name.
type values struct {
	params *Params
	name   string
}

// Value implements objectives.Values.
func (v values) Value() []float32 {
	q, _ := v.params.Get(v.name)
	return v.params.Value(q)
}

// Grad implements objectives.Values.
func (v values) Grad() []float32 {
	q, _ := v.params.Get(v.name)
	return v.params.Grad(q)
}

// blocks collects the transformer blocks of a step under construction, whose results
// the backward pass computes again where memory is short (compute.recompute).
type blocks struct {
	list []exec.Block
	from int64
	open bool
}

// mark returns a function to call before and after the nodes of each block are added.
func (b *blocks) mark(g *gorgonia.ExprGraph) func() {
	return func() {
		at := exec.NextID(g)
		if b.open {
			b.list = append(b.list, exec.Block{From: b.from, To: at})
		}
		b.from, b.open = at, !b.open
	}
}
