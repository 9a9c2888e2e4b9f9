package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute"
)

// Decays that ChooseDecay looks at, as powers of ten: every second one first, then on both sides of the best
// in steps that are halved down to an eighth.
const (
	leastDecay  = -7
	mostDecay   = 1
	coarseDecay = 2
	finestDecay = 0.125
)

// DecayChoice is a decay with the accuracy that a probe fitted with it had on the rows held for the choice.
type DecayChoice struct {
	Decay, Top1 float64
	Tried       []DecayChoice // all, in the order of the search
}

// ChooseDecay searches the decay of a probe as CLIP does (Radford et al. 2021, appendix A.3): probes are fitted
// to a part of n rows x (n, D) and compared by their accuracy on the others, hold*n of them, spread evenly
// over the rows in the order of their classes. Of equally good decays the largest is taken. The caller then
// fits a probe to all rows. progress is told how many fits are made and may be nil.
func ChooseDecay(ctx context.Context, e *compute.Engine, x []float32, labels []int32, classes int, hold float64,
	progress func(done, total int)) (DecayChoice, error) {
	if err := checkRows("the choice of a decay", x, labels, classes); err != nil {
		return DecayChoice{}, err
	}
	train, held := holdRows(labels, hold)
	if len(train) == 0 || len(held) == 0 {
		return DecayChoice{}, fmt.Errorf(
			"eval: holding a share of %g of %d rows leaves %d to fit to and %d to choose the decay on: use more rows or another share", hold, len(labels), len(train), len(held))
	}
	d := len(x) / len(labels)
	fitX, fitY := rowsAt(x, labels, d, train)
	testX, testY := rowsAt(x, labels, d, held)
	coarse := (mostDecay-leastDecay)/coarseDecay + 1
	total := coarse + 2*int(math.Round(math.Log2(coarseDecay/finestDecay)))
	tried := map[float64]float64{}
	var order []DecayChoice
	try := func(power float64) error {
		if _, done := tried[power]; done || power < leastDecay || power > mostDecay {
			return nil
		}
		decay := math.Pow(10, power)
		p, err := FitProbe(ctx, e, fitX, fitY, ProbeOptions{Classes: classes, Decay: decay})
		if err != nil {
			return err
		}
		predicted, err := p.Predict(testX, len(testY))
		if err != nil {
			return err
		}
		tried[power] = Accuracy(predicted, testY)
		order = append(order, DecayChoice{Decay: decay, Top1: tried[power]})
		if progress != nil {
			progress(min(len(order), total), total)
		}
		return nil
	}
	best := func() (power float64) {
		top := math.Inf(-1)
		for p, a := range tried {
			if a > top || a == top && p > power {
				power, top = p, a
			}
		}
		return power
	}
	for p := float64(leastDecay); p <= mostDecay; p += coarseDecay {
		if err := try(p); err != nil {
			return DecayChoice{}, err
		}
	}
	for step := coarseDecay / 2.; step >= finestDecay; step /= 2 {
		middle := best()
		for _, p := range []float64{middle - step, middle + step} {
			if err := try(p); err != nil {
				return DecayChoice{}, err
			}
		}
	}
	if progress != nil {
		progress(total, total)
	}
	p := best()
	return DecayChoice{Decay: math.Pow(10, p), Top1: tried[p], Tried: order}, nil
}

// holdRows divides rows: held are a share of them, spread evenly over the rows in the order of their
// labels, so that each class has its share.
func holdRows(labels []int32, share float64) (train, held []int) {
	order := make([]int, len(labels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(labels[a]) - int(labels[b]) })
	for place, i := range order {
		if math.Floor(float64(place+1)*share) > math.Floor(float64(place)*share) {
			held = append(held, i)
		} else {
			train = append(train, i)
		}
	}
	return train, held
}

// rowsAt copies some rows of width d with their labels.
func rowsAt(x []float32, labels []int32, d int, rows []int) (y []float32, of []int32) {
	for _, i := range rows {
		y, of = append(y, x[i*d:][:d]...), append(of, labels[i])
	}
	return y, of
}
