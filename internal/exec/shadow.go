package exec

import "slices"

// Rounder is a Device with a step that rounds: shadows are made on it alone.
type Rounder interface {
	// PrepareRound is DeviceOp.PrepareOn of Out = In[0], float32, as bfloat16.
	PrepareRound(c *DeviceCall) (Step, error)
}

// value is a result of an entry: its output (0) or auxiliary result k-1, as in entry.results.
type value struct{ entry, k int }

// shadow gives results that stay float32 a copy in bfloat16, a shadow, for the steps on a device that would each round
// them for themselves: those read the shadow, and what else reads the result has every bit of it. The step that makes
// the result writes both, or one that rounds follows it, if two steps at least are spared that. It says whether there
// are shadows.
//
// It comes after the last change of who shares memory with whom: a sum that an op adds to in place has the shadow of
// that op.
func (p *plan) shadow() (any bool) {
	readers := map[value]int{}
	p.rounded(func(_ *entry, _ int, v value) { readers[v]++ })
	for pos := range p.entries {
		e := &p.entries[pos]
		own := p.halfOn(e.node.Op()).Shadows
		for k, r := range e.results() {
			if n := readers[value{pos, k}]; n == 0 || n == 1 && !slices.Contains(own, k-1) {
				continue
			}
			if e.shadows == nil {
				e.shadows = slices.Repeat([]result{{unit: -1}}, 1+len(e.aux))
			}
			u := p.newUnit(halfSize(r.shape.TotalSize()), pos)
			p.units[u].half = true
			e.shadows[k] = result{unit: u, shape: r.shape}
			any = true
		}
	}
	p.rounded(func(e *entry, operand int, v value) {
		if s := p.entries[v.entry].shadows; s != nil && s[v.k].unit >= 0 {
			if e.shaded == nil {
				e.shaded = slices.Repeat([]int{-1}, len(e.in))
			}
			e.shaded[operand] = s[v.k].unit
		}
	})
	return any
}

// rounded calls f for the operands that steps of the device round before they multiply, and that a shadow may take the
// place of: computed results that stay float32 and whose rows are multiples of 16 bytes in it.
func (p *plan) rounded(f func(e *entry, operand int, v value)) {
	for pos := range p.entries {
		e := &p.entries[pos]
		if e.input || e.alias || e.consts != nil {
			continue
		}
		for _, operand := range p.halfOn(e.node.Op()).Rounds {
			if operand >= len(e.in) {
				continue
			}
			out := p.entries[e.in[operand]].out
			if s := out.shape; out.unit < 0 || out.ints || p.units[out.unit].half || len(s) == 0 || s[len(s)-1]%8 != 0 {
				continue
			}
			if v := p.valueOf(e.in[operand]); p.entries[v.entry].consts == nil {
				f(e, operand, v)
			}
		}
	}
}

// valueOf returns the result that entry i is, or is another name of.
func (p *plan) valueOf(i int) value {
	v := value{entry: i}
	for p.entries[v.entry].alias {
		if _, aux, ok := aliasOf(p.entries[v.entry].node); ok && aux >= 0 {
			v.k = aux + 1
		}
		v.entry = p.entries[v.entry].source
	}
	return v
}

// read returns the results that ops read or that outlive a run.
func (p *plan) read() map[value]bool {
	read := map[value]bool{}
	for pos, e := range p.entries {
		if p.outputs[pos] {
			read[p.valueOf(pos)] = true
		}
		if e.alias {
			continue
		}
		for _, j := range e.in {
			read[p.valueOf(j)] = true
		}
	}
	return read
}

// shadowOf returns the unit that an operand is read from instead of its own, -1: none.
func (e *entry) shadowOf(operand int) int {
	if e.shaded == nil {
		return -1
	}
	return e.shaded[operand]
}

// shade returns the step of entry i with what rounds the results whose shadows the step does not write itself; own says
// that it is the op's own step for the device.
func (b *builder) shade(i int, step Step, own bool) (Step, error) {
	e := &b.plan.entries[i]
	for k, r := range e.shadows {
		if r.unit < 0 || own && slices.Contains(b.plan.halfOn(e.node.Op()).Shadows, k-1) {
			continue
		}
		from := e.results()[k]
		c := &DeviceCall{
			In:  []Operand{{Spec: b.spec(from), Buffer: b.buffer(from)}},
			Out: Operand{Spec: b.spec(r), Buffer: b.buffer(r)}, BF16: true,
		}
		round, err := b.cfg.Device.(Rounder).PrepareRound(c)
		if err != nil {
			return nil, err
		}
		first := step
		step = func() error {
			if err := first(); err != nil {
				return err
			}
			return round()
		}
	}
	return step, nil
}
