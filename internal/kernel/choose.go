package kernel

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/library"
	"github.com/geoalign/geoalign/internal/kernel/tune"
)

// leastTuned is the number of multiplications from which a product is worth a choice: below, a
// measurement says more about the moment than about the kernels.
const leastTuned = 1 << 22

// Time that may be spent on measuring in the life of an engine.
const (
	cacheBudget = time.Second
	onBudget    = 10 * time.Second
)

// mostDecided is the number of products that an engine chooses for. Those beyond have the fixed rules.
const mostDecided = 4096

// choice is how a product is computed: by what, and split over the threads along which side.
type choice struct {
	way  *way
	side side
}

// tuner chooses the kernels of an engine.
type tuner struct {
	e       *Engine
	table   *tune.Table
	mode    string
	float   []*way // candidates for products of float32
	half    []*way // and in bfloat16
	builtin *way   // where there is no other one that may compute a product
	decided map[tune.Key]*decision
	dropped map[*way]bool   // that were wrong once
	outside tester          // computes what is new for a library in another process first; nil: nothing does
	refused bool            // there is no such process
	ends    map[string]int  // of such processes, by library
	slow    map[*way][]bool // whether it was much slower than the default, product by product
	left    time.Duration   // of the budget
	spent   time.Duration
	rate    float64   // GFLOP/s of the last product that was measured
	rooms   [2]room   // for results
	cold    []float32 // that is written to before a run
}

// decision is what was chosen for a product, and why.
type decision struct {
	choice
	tune.Choice
	product string
	builtin bool // of built-in products alone
	from    string
}

// Where a decision comes from.
const (
	fromRun     = "run"      // that the engine goes on with
	fromCache   = "cache"    // measured in an earlier process
	fromTiming  = "measured" // in this one
	fromDefault = "default"  // not measured
)

// choose returns the choice for p. It is the same at every call for products of one key. A product whose C is rounded,
// or replaced by what follows it, is measured and checked without that, and where the fixed rules take the built-in
// product so does the choice: that does what follows in the cache, and a library leaves C in memory first (a step of
// the quickstart in bfloat16 took 16 % more with a library whose bare products were 5 to 10 % faster).
func (e *Engine) choose(p *gemm.Product) choice {
	if e.tuner == nil || p.M*p.N*p.K < leastTuned || p.Alpha == 0 || p.Packed != nil {
		return choice{way: e.fixed(p)}
	}
	bare := p.Bare()
	key := tune.KeyOf(&bare)
	key.Finished = p.FinishesTiles() && !e.tuner.foreign(&bare, choice{way: e.fixed(&bare)})
	if d := e.tuner.decided[key]; d != nil {
		return d.choice
	}
	return e.tuner.decide(key, &bare)
}

// decide chooses for a product that is met for the first time.
func (t *tuner) decide(key tune.Key, p *gemm.Product) choice {
	product := key.String()
	d := &decision{product: product, builtin: key.Finished, choice: t.rule(product, p), from: fromDefault}
	if len(t.decided) >= mostDecided {
		return d.choice
	}
	d.Choice = tune.Choice{Kernel: t.nameOf(p, d.choice)}
	q := *p // not p, which would escape to the heap at every product
	t.known(d, &q)
	t.decided[key] = d
	return d.choice
}

// known sets d to what the run or the cache has for the product, or what is measured now.
func (t *tuner) known(d *decision, p *gemm.Product) {
	if kernel, ok := t.table.Run(d.product); ok {
		if c, ok := t.trusted(d.product, p, kernel); ok {
			d.choice, d.Kernel, d.from = c, kernel, fromRun
			if m, ok := t.table.Find(d.product); ok && m.Kernel == kernel {
				d.Choice = m // with speeds
			}
		}
		return
	}
	if m, ok := t.table.Find(d.product); ok {
		if c, ok := t.trusted(d.product, p, m.Kernel); ok {
			d.choice, d.Choice, d.from = c, m, fromCache
			return
		}
	}
	if !t.table.Measures() || !t.ready() {
		return
	}
	begin := time.Now()
	if c, m, ok := t.measure(d.product, p, d.builtin); ok {
		d.choice, d.Choice, d.from = c, m, fromTiming
	} else if c := t.rule(d.product, p); c != d.choice { // what the fixed rules take has ended a process
		d.choice, d.Choice = c, tune.Choice{Kernel: t.nameOf(p, c)}
	}
	t.table.Add(d.product, d.Choice) // the fixed rules too, so that the next process computes the same bits
	took := time.Since(begin)
	t.left, t.spent = t.left-took, t.spent+took
	if t.left <= 0 {
		t.rest()
	}
}

// rule returns the choice for p by fixed rules, of the built-in product where those take a library that ended a process
// for p.
func (t *tuner) rule(product string, p *gemm.Product) choice {
	c := choice{way: t.e.fixed(p)}
	if !t.table.Ended(product, t.nameOf(p, c)) {
		return c
	}
	for _, c := range t.candidates(p) {
		if !c.way.foreign {
			return c
		}
	}
	return choice{way: t.builtin}
}

// trusted returns the choice for p that has a name, and whether there is one here that a library may compute.
func (t *tuner) trusted(product string, p *gemm.Product, kernel string) (choice, bool) {
	c, ok := t.named(p, kernel)
	if !ok || kernel == t.nameOf(p, t.rule(product, p)) {
		return c, ok
	}
	return c, t.sound(product, p, c)
}

// rest gives back what measuring needs, until the next measurement.
func (t *tuner) rest() {
	t.rooms, t.cold = [2]room{}, nil
	if t.outside != nil {
		t.outside.close()
	}
}

// ready says whether products can be measured: what is kept for later processes must have a place, lest each of them
// chooses otherwise, but where all is measured anew at each start.
func (t *tuner) ready() bool {
	err := t.table.Open()
	if err == nil || t.mode == tune.On {
		return true
	}
	t.table.Rest()
	t.e.warn(fmt.Sprintf("matrix products are not measured, since what is found cannot be kept: %v", err))
	return false
}

// candidates returns what p may be computed by beside the fixed rules, in the default split.
func (t *tuner) candidates(p *gemm.Product) (list []choice) {
	all := t.float
	if p.BF16 && len(t.half) > 0 {
		all = t.half
	}
	own := t.nameOf(p, choice{way: t.e.fixed(p)})
	for _, w := range all {
		if w.name != own && !t.dropped[w] {
			list = append(list, choice{way: w})
		}
	}
	return list
}

// other returns c split along the other side than by default, and whether that can be done and is worth a try: a side
// that is more than twice as long is the better one, since each thread reads all of the operand along the other side.
func (t *tuner) other(p *gemm.Product, c choice) (choice, bool) {
	own := sideOf(p.M, p.N, p.K, t.e.threads)
	if own == sideAuto || max(p.M, p.N) > 2*min(p.M, p.N) {
		return c, false
	}
	c.side = sideRows + sideColumns - own
	alongN, _, _ := splitAlong(c.side, p.M, p.N, p.K, t.e.threads)
	return c, alongN == (c.side == sideColumns)
}

// Ends of the names of choices with the other split.
const (
	byRows    = " by rows"
	byColumns = " by columns"
)

// nameOf returns the name of a choice for p.
func (t *tuner) nameOf(p *gemm.Product, c choice) string {
	name := c.way.name
	if c.way == t.e.byRule {
		name = t.e.info.Name
		if t.e.builtIn(p) {
			name = library.Builtin
		}
	}
	switch c.side {
	case sideRows:
		name += byRows
	case sideColumns:
		name += byColumns
	}
	return name
}

// named returns the choice for p that has a name, and whether there is one here.
func (t *tuner) named(p *gemm.Product, name string) (choice, bool) {
	plain := strings.TrimSuffix(strings.TrimSuffix(name, byRows), byColumns)
	for _, c := range slices.Concat([]choice{{way: t.e.fixed(p)}}, t.candidates(p), []choice{{way: t.builtin}}) {
		if t.nameOf(p, c) != plain {
			continue
		}
		if plain == name {
			return c, true
		}
		c, ok := t.other(p, c)
		return c, ok && t.nameOf(p, c) == name
	}
	return choice{}, false
}
