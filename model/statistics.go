package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// statisticsRate is the share that running statistics take of those of a batch, PyTorch's default.
const statisticsRate = 0.1

// norms are the running statistics of the batch norms of a training step. A step keeps the statistics of its batch, and
// the end of the update moves the running ones, by each micro-batch in turn, as forward passes of PyTorch do. So an
// update that is not made leaves them as they were. Groups of a batch that are normalised by themselves, and processes
// that train together, take the mean over theirs.
type norms struct{ list []statistic }

// statistic is a running mean or variance.
type statistic struct {
	name   string         // of the parameter
	groups gorgonia.Nodes // (D) of the batch, or of each group of it
	kept   []float32      // of the micro-batches so far, (D) of each group of each process
}

// add is encoders.Context.Statistics. Scores that several losses read are built for each, and are one node.
func (n *norms) add(running encoders.Moments, batch ...encoders.Moments) {
	if slices.ContainsFunc(n.list, func(x statistic) bool { return x.groups[0] == batch[0].Mean }) {
		return
	}
	mean, variance := statistic{name: running.Mean.Name()}, statistic{name: running.Variance.Name()}
	for _, x := range batch {
		mean.groups, variance.groups = append(mean.groups, x.Mean), append(variance.groups, x.Variance)
	}
	n.list = append(n.list, mean, variance)
}

// nodes lists what a step has to compute for them.
func (n *norms) nodes() (list gorgonia.Nodes) {
	for _, x := range n.list {
		list = append(list, x.groups...)
	}
	return list
}

// keep keeps the statistics of a micro-batch, of all processes.
func (n *norms) keep(m *exec.Machine, g parallel.Group) error {
	for i := range n.list {
		x := &n.list[i]
		for _, group := range x.groups {
			v, err := m.Value(group)
			if err != nil {
				return err
			}
			if x.kept, err = g.Gather(x.kept, v.F32); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop forgets what was kept.
func (n *norms) drop() {
	for i := range n.list {
		n.list[i].kept = n.list[i].kept[:0]
	}
}

// move moves the running statistics by those of the micro-batches of so many processes.
func (n *norms) move(p *Params, processes int) {
	for _, x := range n.list {
		q, _ := p.Get(x.name)
		running, parts := p.Value(q), processes*len(x.groups)
		for d := len(running) * parts; len(x.kept) >= d; x.kept = x.kept[d:] {
			for j := range running {
				mean := float32(0)
				for k := range parts {
					mean += x.kept[k*len(running)+j] / float32(parts)
				}
				running[j] += statisticsRate * (mean - running[j])
			}
		}
	}
	n.drop()
}

// teacherNorms gives batch norms of the momentum encoder what they normalise by: statistics of their own batch, whose
// groups are of shuffled images, or the running ones. Either way those of the momentum encoder follow the student's, as
// all its parameters do.
func (b *builder) teacherNorms() {
	if b.s.TeacherContext == nil {
		return
	}
	r := b.cfg.Model.Image.ResNet
	if b.cfg.Model.Image.Style == encoders.StyleResNet && r.TeacherNorm == encoders.TeacherNormRunning {
		return
	}
	b.s.TeacherContext.Statistics = func(encoders.Moments, ...encoders.Moments) {}
	shuffles := 0
	b.s.TeacherContext.Shuffle = func(n int) (order, back *gorgonia.Node) {
		shuffles++
		name := fmt.Sprintf("%s/%d", rng.Shuffle, shuffles)
		first, all := b.o.Group.Rank()*n, b.o.Group.Size()*n
		draw := func(f *feed.Step) []int { return rng.New(b.s.Seed, name, f.Stream()).Perm(all) }
		order = b.s.Ints(name+"/order", func(f *feed.Step, dst []int32) error {
			for i, from := range draw(f)[first:][:n] {
				dst[i] = int32(from)
			}
			return nil
		}, n)
		return order, b.s.Ints(name+"/back", func(f *feed.Step, dst []int32) error {
			for i, from := range draw(f) {
				if from >= first && from < first+n {
					dst[from-first] = int32(i)
				}
			}
			return nil
		}, n)
	}
}

// agreement is how alike the text features of the student and of the teacher are, by which a dynamic momentum.rule
// moves the teacher. A step keeps that of its batch; nothing changes before the update.
type agreement struct {
	online, teacher *gorgonia.Node // (B, C); nil where nothing reads it
	kept            []float32      // mean cosines of the micro-batches so far, of all processes
	mean            [1]float32     // of the newest one here
}

// agree has the step compute both features.
func (b *builder) agree() {
	if !b.cfg.Momentum.Dynamic() {
		return
	}
	a := &b.step.agreement
	a.online, a.teacher = b.s.Online.Text.Features, b.s.Teacher.Text.Features
	objectives.Need(a.online != nil && a.teacher != nil, "momentum.rule",
		"needs text features of the student and of the teacher: set momentum.rule = \"static\"")
}

// nodes lists what a step has to compute for it.
func (a *agreement) nodes() gorgonia.Nodes {
	if a.online == nil {
		return nil
	}
	return gorgonia.Nodes{a.online, a.teacher}
}

// keep keeps the mean cosine of a micro-batch, of all processes.
func (a *agreement) keep(m *exec.Machine, g parallel.Group) error {
	if a.online == nil {
		return nil
	}
	x, err := m.Value(a.online)
	if err != nil {
		return fmt.Errorf("model: text features: %w", err)
	}
	y, err := m.Value(a.teacher)
	if err != nil {
		return fmt.Errorf("model: the teacher's text features: %w", err)
	}
	a.mean[0] = float32(meanCosine(x.F32, y.F32, x.Dim(1)))
	a.kept, err = g.Gather(a.kept, a.mean[:])
	return err
}

// meanCosine is the mean of the cosines of rows x and y of c channels.
func meanCosine(x, y []float32, c int) float64 {
	sum, rows := 0.0, len(x)/c
	for ; len(x) > 0; x, y = x[c:], y[c:] {
		var xy, xx, yy float64
		for i, v := range x[:c] {
			a, b := float64(v), float64(y[i])
			xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
		}
		sum += xy / math.Sqrt(xx*yy)
	}
	return sum / float64(rows)
}

// TextAgreement returns the mean cosine of the text features of the last update's batch, of all its micro-batches and
// processes, with those of the teacher: what a dynamic momentum.rule reads. It is not finite where a feature is not.
func (p *Trainer) TextAgreement() float64 {
	kept := p.step.agreement.kept
	sum := 0.0
	for _, v := range kept {
		sum += float64(v)
	}
	return sum / float64(len(kept))
}

// boundarySamples are what an update's micro-batches say of matched and of mismatched words, of which the
// boundary between both is learned.
type boundarySamples struct {
	node     *gorgonia.Node // (6) of the batch
	all      interact.Samples
	gathered []float32
}

// samples takes the samples of an interaction that learns from some.
func (b *builder) samples() {
	if b.cfg.Model.Interaction.Kind == interact.NAAF {
		b.s.Student.Samples = func(n *gorgonia.Node) { b.step.samples = &boundarySamples{node: n} }
	}
}

// sample keeps the samples of the last batch, the first one of an update or a further one, of all
// processes.
func (p *Trainer) sample(first bool) error {
	x := p.step.samples
	if x == nil {
		return nil
	}
	if first {
		x.all = interact.Samples{}
	}
	v, err := p.step.machine.Value(x.node)
	if err != nil {
		return err
	}
	if r := p.ranks(); r.Group != nil && !r.Local { // of all already
		x.all.Add(v.F32)
		return nil
	}
	if x.gathered, err = p.o.Group.Gather(x.gathered[:0], v.F32); err != nil {
		return err
	}
	x.all.Add(x.gathered)
	return nil
}

// moveBoundary moves the boundary of mismatched words by the samples of the update.
func (p *Trainer) moveBoundary() {
	x := p.step.samples
	if x == nil {
		return
	}
	q, _ := p.params.Get(interact.BoundaryName)
	v := p.params.Value(q)
	t, safe := x.all.Boundary(float64(v[0]), float64(v[1]), p.cfg.Model.Interaction.Penalty)
	v[0], v[1] = float32(t), float32(safe)
	x.all = interact.Samples{}
}
