package main

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Measured is what was measured on one kind of host.
type Measured struct {
	About    []string // machine, versions, commands
	Batch    int      // rows of a step
	Gradient float64  // MB on the wire
	Bucket   float64  // MB
	Feature  float64  // bytes of a row that is gathered
	Back     float64  // share of the backward pass in the time of a row
	Compute  []Point  // of one rank: rows and ms of a step
	Links    []Line
}

// Point is a time for an amount.
type Point struct{ X, MS float64 }

// Line is a link between hosts.
type Line struct {
	Name  string
	Gbit  float64 // its rate; 0: as fast as the machine is
	Ranks int     // of Sums
	Sums  []Point // MB of a sum and ms
	Steps []struct {
		Ranks, Rows int // of a rank
		MS          float64
	} // measured; how much exchanges hold up computation is fitted to them, and nothing else
}

// fit fits a step to each link: a and c to Compute, l and w to the link's sums, p to its steps.
func (m Measured) fit() ([]Step, error) {
	if len(m.Links) == 0 || !(m.Batch > 0 && m.Gradient > 0 && m.Bucket > 0) {
		return nil, fmt.Errorf("%d links, Batch %d, Gradient %g and Bucket %g: want all of them above 0", len(m.Links),
			m.Batch, m.Gradient, m.Bucket)
	}
	a, c, err := line(m.Compute)
	if err != nil {
		return nil, fmt.Errorf("compute: %w", err)
	}
	var all []Step
	for _, l := range m.Links {
		if l.Ranks < 2 {
			return nil, fmt.Errorf("link %s: sums of %d ranks: want at least 2", l.Name, l.Ranks)
		}
		at, slope, err := line(l.Sums)
		if err != nil {
			return nil, fmt.Errorf("link %s: %w", l.Name, err)
		}
		others := 2 * float64(l.Ranks-1)
		step := Step{
			Fixed: max(0, a), PerRow: c, Back: m.Back, Gradients: 1e6 * m.Gradient, Bucket: 1e6 * m.Bucket,
			Features: m.Feature,
			Link:     Link{Latency: max(0, at) / others, Bandwidth: others / float64(l.Ranks) * 1e6 / slope},
		}
		var missing, exchanged float64
		for _, s := range l.Steps {
			without, _ := step.Seconds(s.Ranks, float64(s.Rows))
			missing += s.MS/1e3 - without
			exchanged += step.Exchange(s.Ranks, float64(s.Rows))
		}
		if exchanged > 0 {
			step.Work = max(0, missing/exchanged)
		}
		all = append(all, step)
	}
	return all, nil
}

// line is the straight line of least relative squares through points, in seconds at 0 and for each X.
func line(points []Point) (at, slope float64, err error) {
	if len(points) < 2 {
		return 0, 0, errors.New("want two points or more")
	}
	x, y := mat.NewDense(len(points), 2, nil), mat.NewVecDense(len(points), nil)
	for i, p := range points {
		x.SetRow(i, []float64{1 / p.MS, p.X / p.MS})
		y.SetVec(i, 1)
	}
	var b mat.VecDense
	if err := b.SolveVec(x, y); err != nil {
		return 0, 0, err
	}
	if b.AtVec(1) <= 0 {
		return 0, 0, errors.New("more takes no longer than less: measure again on a quiet machine")
	}
	return b.AtVec(0) / 1e3, b.AtVec(1) / 1e3, nil
}
