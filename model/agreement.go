package model

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// agreement is how alike the text features of the student and of the teacher are, by which a dynamic momentum.rule moves
// the teacher. A step keeps that of its batch; nothing changes before the update.
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
	objectives.Need(a.online != nil && a.teacher != nil, "momentum.rule", "needs text features of the student and of the teacher: set momentum.rule = \"static\"")
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
