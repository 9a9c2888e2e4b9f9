package exec

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// KindStats sums up what one kind of op cost over all runs since ResetProfile.
type KindStats struct {
	Kind  string
	Nodes int           // in the program
	Time  time.Duration // over all runs
	FLOPs int64         // in matrix products, over all runs
}

// Profile is the time of all runs since the last ResetProfile, by kind of op.
type Profile struct {
	Runs  int
	Kinds []KindStats // most expensive first
	Time  time.Duration
	FLOPs int64
}

type profile struct {
	runs  int
	kinds []KindStats // FLOPs of one run, no times: instructions hold them
	index map[string]int
}

func newProfile() profile { return profile{index: map[string]int{}} }

// add registers a node and returns the index of its kind.
func (p *profile) add(o gorgonia.Op, in []tensor.Shape) int {
	kind := fmt.Sprintf("%T", o)
	if k, ok := o.(interface{ Kind() string }); ok {
		kind = k.Kind()
	} else if isAdd(o) {
		kind = "add gradients"
	}
	i, ok := p.index[kind]
	if !ok {
		i = len(p.kinds)
		p.index[kind] = i
		p.kinds = append(p.kinds, KindStats{Kind: kind})
	}
	p.kinds[i].Nodes++
	if c, ok := o.(Coster); ok {
		p.kinds[i].FLOPs += c.FLOPs(in)
	}
	return i
}

// Profile returns the costs so far. What an op computes by ops of its own is theirs.
func (m *Machine) Profile() Profile {
	out := Profile{Runs: m.prof.runs, Kinds: slices.Clone(m.prof.kinds)}
	for i := range out.Kinds {
		out.Kinds[i].FLOPs *= int64(m.prof.runs)
	}
	for i := range m.prog {
		in := &m.prog[i]
		out.Time += in.time
		if in.inner == nil {
			out.Kinds[in.kind].Time += in.time
			continue
		}
		p := in.inner.Profile()
		out.Kinds[in.kind].Time += in.time - p.Time
		for _, k := range p.Kinds {
			out.add(k)
		}
	}
	for _, k := range out.Kinds {
		out.FLOPs += k.FLOPs
	}
	sort.SliceStable(out.Kinds, func(i, j int) bool { return out.Kinds[i].Time > out.Kinds[j].Time })
	return out
}

// add counts k with what there is of its kind.
func (p *Profile) add(k KindStats) {
	for i := range p.Kinds {
		if at := &p.Kinds[i]; at.Kind == k.Kind {
			at.Nodes, at.Time, at.FLOPs = at.Nodes+k.Nodes, at.Time+k.Time, at.FLOPs+k.FLOPs
			return
		}
	}
	p.Kinds = append(p.Kinds, k)
}

// ResetProfile starts the profile anew.
func (m *Machine) ResetProfile() {
	m.prof.runs = 0
	for i := range m.prog {
		m.prog[i].time = 0
		if inner := m.prog[i].inner; inner != nil {
			inner.ResetProfile()
		}
	}
}

// Passes splits the time of all runs since ResetProfile in two: up to the end of node
// n, such as the loss, and what runs after it, such as the backward pass.
func (m *Machine) Passes(n *gorgonia.Node) (before, after time.Duration) {
	last := m.place(n) // what is before an input, or a node that is not in the plan, takes no time
	for i := range m.prog {
		if m.prog[i].place <= last {
			before += m.prog[i].time
		} else {
			after += m.prog[i].time
		}
	}
	return before, after
}

// FLOPs returns the floating-point operations in matrix products of one run.
func (m *Machine) FLOPs() int64 {
	var n int64
	for _, k := range m.prof.kinds {
		n += k.FLOPs
	}
	for i := range m.prog {
		if inner := m.prog[i].inner; inner != nil {
			n += int64(inner.Nested.Runs) * inner.FLOPs()
		}
	}
	return n
}
