package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/tune"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// How a product is measured. Each candidate computes it once, which is checked. Then a part of it is timed, along its
// longest side, which has least to do with how fast a kernel is. The candidate with the least time of two turns has to
// beat the default then: in pairs of runs one after the other, of which it must win most by the margin, and those of
// the whole product after them. Machines are slower for some milliseconds now and then, which a pair has in common, and
// of two kernels that are even the default stays. Before each run other memory is written to, since products of a step
// do not find their operands in the level-2 cache either.
const (
	turns      = 2
	pairsWon   = 5    // that win
	pairsLost  = 3    // that lose
	wholePairs = 2    // of the whole product, all of which are to be won
	margin     = 0.05 // by which a pair is won
	slow       = 1.5  // times the first time of the default, from partTime on: no turn at all
	// products for which a way took that many times as long as the best, one after the other: see lags
	mostSlow   = 3
	partTime   = 2 * time.Millisecond // that a part should take
	coldRoom   = 512 << 10            // values that a thread writes before each run
	leastShare = 4                    // a part is at least 1/4
	leastSide  = 512                  // of at least so many rows, columns or terms
)

// trial is a candidate in the course of a measurement.
type trial struct {
	choice
	name  string
	out   output
	first time.Duration // of the whole product
	best  time.Duration // of the part
	wrong bool
}

// measurement is that of one product.
type measurement struct {
	*tuner
	product string
	p, part *gemm.Product
	rule    *trial // the default
	check   *checker
}

// measure times the candidates for p on its own operands and returns the best. ok is false where that
// could not be told: the fixed rules stay. The result of p is undefined then and otherwise. builtin leaves libraries
// out.
func (t *tuner) measure(product string, p *gemm.Product, builtin bool) (best choice, found tune.Choice, ok bool) {
	rule := t.rule(product, p)
	candidates := slices.DeleteFunc(t.candidates(p), func(c choice) bool {
		return t.nameOf(p, c) == t.nameOf(p, rule) || builtin && t.foreign(p, c) || t.lags(c.way)
	})
	if _, split := t.other(p, choice{}); len(candidates) == 0 && !split {
		return best, found, false
	}
	outside := t.untried(product, p, append(candidates, rule))
	if t.left <= 0 || t.rate > 0 && t.cost(gflop(p)/t.rate, len(candidates), outside) > t.left ||
		resultSize(p) > mostRoom || max(p.A.Length(), p.B.Length()) > mostOperand {
		return best, found, false
	}
	if !t.sound(product, p, rule) {
		was := rule
		if rule = t.rule(product, p); rule == was {
			return best, found, false
		}
	}
	kept := t.e.job.scratch // of operands that only candidates convert, which is not kept
	t.e.job.scratch = operandScratch{}
	defer func() { t.e.job.scratch = kept }()
	own, other := t.outputs(p)

	m := &measurement{tuner: t, product: product, p: p, rule: &trial{choice: rule, out: own}}
	m.rule.name = t.nameOf(p, m.rule.choice)
	m.rule.first = m.time(p, m.rule)
	if t.cost(m.rule.first.Seconds(), len(candidates), outside) > t.left {
		return best, found, false
	}
	if m.check = newChecker(t.e, p, own); !m.check.usable {
		return best, found, false
	}
	m.part = t.partOf(p, m.rule.first)
	trials := []*trial{m.rule}
	for _, c := range candidates {
		if x := m.trial(c, other); m.try(x) {
			trials = append(trials, x)
		}
	}
	if m.rule.wrong {
		trials = trials[1:]
	}
	winner := m.fastest(trials)
	if winner != m.rule && !m.rule.wrong && !m.holds(winner) {
		winner = m.rule
	}
	for _, x := range trials {
		m.slow[x.way] = append(m.slow[x.way], float64(x.best) > slow*float64(winner.best))
	}
	if c, split := t.other(p, winner.choice); split {
		if x := m.trial(c, other); m.sound(product, p, c) && m.fastest([]*trial{winner, x}) == x && m.tryAgain(x) {
			winner = x
		}
	}
	speed := func(x *trial) float64 { return gflop(m.part) / x.best.Seconds() }
	found = tune.Choice{Kernel: winner.name, GFLOPS: speed(winner), Default: m.rule.name}
	if m.rule.best > 0 {
		found.DefaultGFLOPS = speed(m.rule)
	}
	t.rate = found.GFLOPS
	return winner.choice, found, true
}

// trial returns a trial of a choice.
func (m *measurement) trial(c choice, out output) *trial {
	return &trial{choice: c, name: m.nameOf(m.p, c), out: out}
}

// partOf returns the part of p that is timed, where p takes so long. It is split over the threads as p is.
func (t *tuner) partOf(p *gemm.Product, took time.Duration) *gemm.Product {
	q := *p
	longest := &q.M
	if q.N > *longest {
		longest = &q.N
	}
	if q.K > *longest {
		longest = &q.K
	}
	n := int(float64(*longest) * float64(partTime) / float64(took))
	n = (max(n, *longest/leastShare, leastSide) + columnStep - 1) / columnStep * columnStep
	if n >= *longest {
		return p
	}
	*longest = n
	_, parts, _ := splitProduct(q.M, q.N, q.K, t.e.threads)
	if _, whole, _ := splitProduct(p.M, p.N, p.K, t.e.threads); parts != whole {
		return p
	}
	if q.Bias != nil {
		q.Bias = q.Bias[:q.N]
	}
	return &q
}

// cost estimates what a measurement takes of a product that takes so many seconds, with so many runs in another
// process.
func (t *tuner) cost(seconds float64, candidates, outside int) time.Duration {
	part := max(min(1, partTime.Seconds()/seconds), 1./leastShare)
	runs := 1 + float64(outside) + 1.5*float64(candidates) + part*turns*float64(candidates+3)
	return time.Duration(runs * seconds * float64(time.Second))
}

// fastest times trials and returns the fastest, the first of them unless another one beats it.
func (m *measurement) fastest(trials []*trial) *trial {
	for range turns {
		for _, x := range trials {
			m.run(x)
		}
	}
	if len(trials) == 1 {
		return trials[0]
	}
	first, other := trials[0], slices.MinFunc(trials[1:], func(a, b *trial) int { return cmp.Compare(a.best, b.best) })
	won, lost := 0, 0
	for beats(other.best, first.best) && won < pairsWon && lost < pairsLost {
		if a, b := m.run(first), m.run(other); beats(b, a) {
			won++
		} else {
			lost++
		}
	}
	if won == pairsWon {
		return other
	}
	return first
}

// holds says whether a trial that beats the default in the part does so in the whole: oneDNN 2.6 does a part of
// 2048x1536x768 in bfloat16 at 1020 GFLOP/s and the whole at 800, the built-in product both at 940.
func (m *measurement) holds(x *trial) bool {
	for n := 0; m.part != m.p && n < wholePairs; n++ {
		m.chill()
		a := m.time(m.p, m.rule)
		m.chill()
		if b := m.time(m.p, x); !beats(b, a) {
			return false
		}
	}
	return true
}

// beats says whether a time is less than another one by the margin.
func beats(a, b time.Duration) bool { return float64(a) < (1-margin)*float64(b) }

// chill empties the caches next to the processors.
func (m *measurement) chill() {
	if m.cold == nil {
		m.cold = make([]float32, m.e.threads*coldRoom)
	}
	m.e.For(m.e.threads, 1, func(_, lo, hi int) { vector.Fill(m.cold[lo*coldRoom:hi*coldRoom], 0) })
}

// run times the part by a trial.
func (m *measurement) run(x *trial) time.Duration {
	m.chill()
	d := m.time(m.part, x)
	if x.best == 0 || d < x.best {
		x.best = d
	}
	return d
}

// try computes the product by a candidate for the first time and says whether it may be chosen. One that panics or is
// wrong is never tried again. Where the default is wrong, that is noted.
func (m *measurement) try(x *trial) bool {
	if x.way.foreign {
		if !m.sound(m.product, m.p, x.choice) {
			return false
		}
		m.table.Begin(m.product, x.name)
		defer m.table.End()
	}
	x.out.refresh(m.p)
	if err := m.first(x); err != nil {
		m.drop(x, err.Error())
		return false
	}
	switch v, difference := m.check.compare(x.out); v {
	case isWrong:
		m.drop(x, difference)
		return false
	case defaultWrong:
		if !m.rule.wrong {
			m.rule.wrong = true
			m.e.warn(fmt.Sprintf("%s is wrong for the product %s: %s: %s is used for it", m.rule.name, m.product,
				difference, x.name))
		}
		return true
	}
	if m.rule.wrong || x.first < partTime || float64(x.first) < slow*float64(m.rule.first) {
		return true
	}
	m.slow[x.way] = append(m.slow[x.way], true)
	return false
}

// lags says whether a way was slow for each of the first products that it was tried for. It is not tried for more then,
// where time is short: a library that does not know the processor is slow for all.
func (t *tuner) lags(w *way) bool {
	was := t.slow[w]
	return t.mode != tune.On && len(was) >= mostSlow && !slices.Contains(was[:mostSlow], false)
}

// tryAgain is try after something was timed, which may have added to the result of the default.
func (m *measurement) tryAgain(x *trial) bool {
	if m.p.Beta != 0 {
		m.rule.out.refresh(m.p)
		m.time(m.p, m.rule)
	}
	return m.try(x)
}

// first computes the whole product by a trial and returns its panic.
func (m *measurement) first(x *trial) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	x.first = m.time(m.p, x)
	return nil
}

// time computes p, the product or its part, once by a trial, into its own result. A part is split as the whole is.
func (m *measurement) time(p *gemm.Product, x *trial) time.Duration {
	q, c := *p, x.choice
	q.C = x.out
	if c.side == sideAuto {
		c.side = sideOf(m.p.M, m.p.N, m.p.K, m.e.threads)
	}
	begin := time.Now()
	m.e.multiply(&q, c)
	return max(time.Since(begin), 1)
}

// drop leaves a way out from now on and warns of it.
func (m *measurement) drop(x *trial, why string) {
	m.dropped[x.way] = true
	m.e.warn(fmt.Sprintf("%s is not used for further matrix products: for the product %s %s", x.name, m.product, why))
}

// gflop returns the billions of operations of p.
func gflop(p *gemm.Product) float64 { return 2e-9 * float64(p.M) * float64(p.N) * float64(p.K) }
