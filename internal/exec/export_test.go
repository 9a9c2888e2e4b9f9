package exec

import (
	"fmt"
	"math"
)

// CheckLayout looks for two results that live at the same time in the same memory.
func (m *Machine) CheckLayout() error {
	for i, a := range m.plan.units {
		for j, b := range m.plan.units[:i] {
			if a.size == 0 || b.size == 0 || outside(a) || outside(b) || a.lent != b.lent {
				continue
			}
			alive := a.from <= b.to && b.from <= a.to
			if alive && a.offset < b.offset+b.size && b.offset < a.offset+a.size {
				return fmt.Errorf("units %d %+v and %d %+v overlap", i, a, j, b)
			}
		}
		if a.lent && a.offset+a.size > m.plan.lent.Words {
			return fmt.Errorf("unit %d %+v ends behind the %d words that are lent", i, a, m.plan.lent.Words)
		}
		if a.external == nil && !a.lent && a.offset+a.size > m.plan.arena {
			return fmt.Errorf("unit %d %+v ends behind the arena of %d", i, a, m.plan.arena)
		}
	}
	return nil
}

// outside says whether a unit lies in memory of the caller's that is not lent.
func outside(u unit) bool { return u.external != nil && !u.lent }

// Poison fills the memory of everything that a run computes with v.
func (m *Machine) Poison(v float32) {
	constant := map[int]bool{}
	for _, e := range m.plan.entries {
		if e.consts != nil {
			constant[e.out.unit] = true
		}
	}
	for i, u := range m.plan.units {
		v := v
		if upper := math.Float32bits(v) >> 16; u.half {
			v = math.Float32frombits(upper<<16 | upper)
		}
		if u.external != nil || constant[i] {
			continue
		}
		for k := range u.size {
			if u.lent {
				m.cfg.Lend[u.offset+k] = v
			} else {
				m.arena[u.offset+k] = v
			}
		}
	}
	for i := range m.scratch {
		m.scratch[i] = v
	}
}

// CompleteBefore says whether bound node k is complete before the last op.
func (m *Machine) CompleteBefore(k int) bool {
	return m.plan.complete[k].place < m.prog[len(m.prog)-1].place
}
