package model

import (
	"slices"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// statisticsRate is the share that running statistics take of those of a batch, PyTorch's default.
const statisticsRate = 0.1

// norms are the running statistics of the batch norms of a training step. A step keeps the statistics of its batch, and
// the end of the update moves the running ones, by each micro-batch in turn, as forward passes of PyTorch do. So an update that
// is not made leaves them as they were. Groups of a batch that are normalised by themselves, and processes that train together, take
// the mean over theirs.
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
