package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/tune"
)

// How a product is measured. Candidates are timed in turns, so that what slows the machine down for a
// while slows all of them, and the least time of each counts.
const (
	leastTurns = 2
	mostTurns  = 6
	enoughTime = 8 * time.Millisecond // after which leastTurns are enough
	slow       = 1.25                 // times the least: no more turns
	margin     = 0.03                 // by which another kernel must be faster than the default
)

// mostRoom is the number of values of a result above which a product is not measured, since the
// candidates need results of their own.
const mostRoom = 16 << 20

// trial is a candidate in the course of a measurement.
type trial struct {
	choice
	name  string
	out   output
	best  time.Duration
	wrong bool
}

// measure times the candidates for p on its own operands and returns the best. ok is false where that
// could not be told: the fixed rules stay. The result of p is undefined then and otherwise.
//
//	gain = 1 - least time / least time of the default > margin
func (t *tuner) measure(product string, p *gemm.Product) (best choice, m tune.Choice, ok bool) {
	candidates := t.candidates(p)
	if _, split := t.other(p, choice{}); len(candidates) == 0 && !split {
		return best, m, false
	}
	if t.left <= 0 || t.rate > 0 && t.cost(gflop(p)/t.rate, len(candidates)) > t.left || resultSize(p) > mostRoom {
		return best, m, false
	}
	kept := t.e.job.scratch // of operands that only candidates convert, which is not kept
	t.e.job.scratch = operandScratch{}
	defer func() { t.e.job.scratch = kept }()
	own, other := t.outputs(p)
	defer t.room.give(own, other)

	first := &trial{choice: choice{way: t.e.fixed(p)}, out: own}
	first.name = t.nameOf(p, first.choice)
	d := t.time(p, first)
	if t.cost(d.Seconds(), len(candidates)) > t.left {
		return best, m, false
	}
	check := newChecker(t.e, p, own)
	if !check.usable {
		return best, m, false
	}
	trials := []*trial{first}
	for _, c := range candidates {
		if x := (&trial{choice: c, name: t.nameOf(p, c), out: other}); t.try(product, p, x, first, check) {
			trials = append(trials, x)
		}
	}
	if first.wrong {
		trials = trials[1:]
	}
	winner := t.compare(p, trials)
	if c, split := t.other(p, winner.choice); split {
		if p.Beta != 0 { // own has been added to
			own.refresh(p)
			t.time(p, first)
		}
		if x := (&trial{choice: c, name: t.nameOf(p, c), out: other}); t.try(product, p, x, first, check) {
			winner = t.compare(p, []*trial{winner, x})
		}
	}
	speed := func(x *trial) float64 { return gflop(p) / x.best.Seconds() }
	m = tune.Choice{Kernel: winner.name, GFLOPS: speed(winner), Default: first.name}
	if first.best > 0 {
		m.DefaultGFLOPS = speed(first)
	}
	t.rate = m.GFLOPS
	return winner.choice, m, true
}

// gflop returns the billions of operations of p.
func gflop(p *gemm.Product) float64 { return 2e-9 * float64(p.M) * float64(p.N) * float64(p.K) }

// cost estimates what a measurement takes of a product that takes so many seconds.
func (t *tuner) cost(seconds float64, candidates int) time.Duration {
	runs := 1 + leastTurns + (candidates+1)*(2+leastTurns)
	return time.Duration(float64(runs) * seconds * float64(time.Second))
}

// compare times trials in turns and returns the fastest, the first of them unless another one is faster by the margin.
func (t *tuner) compare(p *gemm.Product, trials []*trial) *trial {
	alive, begin := slices.Clone(trials), time.Now()
	for turn := 0; turn < mostTurns && len(alive) > 1; turn++ {
		if turn >= leastTurns && time.Since(begin) > enoughTime {
			break
		}
		least := time.Duration(0)
		for _, x := range alive {
			if d := t.time(p, x); x.best == 0 || d < x.best {
				x.best = d
			}
			if least == 0 || x.best < least {
				least = x.best
			}
		}
		alive = slices.DeleteFunc(alive, func(x *trial) bool { return float64(x.best) > slow*float64(least) })
	}
	if trials[0].best == 0 { // alone
		trials[0].best = t.time(p, trials[0])
	}
	best := trials[0]
	for _, x := range trials[1:] {
		if x.best < best.best {
			best = x
		}
	}
	if float64(best.best) > (1-margin)*float64(trials[0].best) {
		return trials[0]
	}
	return best
}

// try computes p by a candidate for the first time and says whether it may be chosen. One that panics or is wrong is never
// tried again. Where the default is wrong, that is noted in first.
func (t *tuner) try(product string, p *gemm.Product, x, first *trial, check *checker) bool {
	if x.way.foreign {
		if t.table.Ended(product, x.name) {
			return false
		}
		t.table.Begin(product, x.name)
		defer t.table.End()
	}
	x.out.refresh(p)
	if err := t.first(p, x); err != nil {
		t.drop(x, product, err.Error())
		return false
	}
	switch v, difference := check.compare(x.out); v {
	case isWrong:
		t.drop(x, product, difference)
		return false
	case defaultWrong:
		if !first.wrong {
			first.wrong = true
			t.e.warn(fmt.Sprintf("%s is wrong for the product %s: %s: %s is used for it", first.name, product, difference, x.name))
		}
	}
	return true
}

// first runs a trial and returns its panic.
func (t *tuner) first(p *gemm.Product, x *trial) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	t.time(p, x)
	return nil
}

// time computes p once by a trial, into its own result.
func (t *tuner) time(p *gemm.Product, x *trial) time.Duration {
	q := *p
	q.C, q.Activated = x.out.c, x.out.activated
	begin := time.Now()
	t.e.multiply(&q, x.choice)
	return max(time.Since(begin), 1)
}

// drop leaves a way out from now on and warns of it.
func (t *tuner) drop(x *trial, product, why string) {
	t.dropped[x.way] = true
	t.e.warn(fmt.Sprintf("%s is not used for further matrix products: for the product %s %s", x.name, product, why))
}
