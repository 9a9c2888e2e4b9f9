package ptb

import (
	"encoding/binary"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"unicode"
)

// automaton is a deterministic automaton for many expressions at once, made as texts need its states. It reads UTF-16,
// as Java does: a character beyond U+FFFF is two units.
type automaton struct {
	code   []syntax.Inst  // of all expressions, one after the other
	ends   map[uint32]int // the position in code of a match: the number that add was given
	class  []uint16       // of a unit: units of one class are alike to all sets
	sample []rune         // of a class: a unit of it
	states []state
	byCode map[string]int32
}

// state is a set of positions in the code.
type state struct {
	code []uint32
	end  int     // the least number of an expression that ends here, or none
	next []int32 // of a class: a state, dead or unmade
}

const (
	none         = -1
	dead, unmade = int32(-1), int32(-2)
)

// add appends an expression, and returns where it begins. Where several end at the same place, the one with the least
// number counts.
func (a *automaton) add(expression string, number int) (begin uint32) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(fmt.Sprintf("ptb: %q: %v", expression, err)) // a constant
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		panic(fmt.Sprintf("ptb: %q: %v", expression, err))
	}
	base := uint32(len(a.code))
	for i, inst := range program.Inst {
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			inst.Out, inst.Arg = inst.Out+base, inst.Arg+base
		case syntax.InstMatch:
			a.ends[base+uint32(i)] = number
		default:
			inst.Out += base
		}
		a.code = append(a.code, inst)
	}
	return base + uint32(program.Start)
}

// finish sorts the units into classes, after the last expression.
func (a *automaton) finish() {
	var sets []syntax.Inst // the distinct ones
	known := map[string]bool{}
	edges := map[rune]bool{0: true} // where membership of some set may change
	for _, inst := range a.code {
		key := fmt.Sprint(inst.Op, inst.Rune, inst.Arg)
		if !isSet(inst.Op) || known[key] {
			continue
		}
		known[key], sets = true, append(sets, inst)
		for _, r := range inst.Rune { // a unit, or the first and the last of each range
			edges[r], edges[r+1] = true, true
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) { // both cases may be written as one
				edges[f], edges[f+1] = true, true
			}
		}
	}
	a.class = make([]uint16, 1<<16)
	byMembership := map[string]uint16{}
	class := uint16(0)
	membership := make([]byte, len(sets))
	for u := range a.class {
		if edges[rune(u)] {
			for k := range sets {
				membership[k] = 0
				if sets[k].MatchRune(rune(u)) {
					membership[k] = 1
				}
			}
			var ok bool
			if class, ok = byMembership[string(membership)]; !ok {
				class = uint16(len(a.sample))
				byMembership[string(membership)] = class
				a.sample = append(a.sample, rune(u))
			}
		}
		a.class[u] = class
	}
}

func isSet(op syntax.InstOp) bool {
	return op == syntax.InstRune || op == syntax.InstRune1 || op == syntax.InstRuneAny || op == syntax.InstRuneAnyNotNL
}

// state returns the state of the positions that are reached from some without reading.
func (a *automaton) state(from []uint32) int32 {
	reached := map[uint32]bool{}
	for stack := slices.Clone(from); len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if reached[at] {
			continue
		}
		reached[at] = true
		switch inst := a.code[at]; {
		case inst.Op == syntax.InstAlt || inst.Op == syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case inst.Op == syntax.InstNop || inst.Op == syntax.InstCapture:
			stack = append(stack, inst.Out)
		}
	}
	s := state{end: none}
	for _, at := range slices.Sorted(maps.Keys(reached)) {
		if number, ok := a.ends[at]; ok && (s.end == none || number < s.end) {
			s.end = number
		}
		if isSet(a.code[at].Op) || a.code[at].Op == syntax.InstMatch {
			s.code = append(s.code, at)
		}
	}
	if len(s.code) == 0 {
		return dead
	}
	var key []byte
	for _, at := range s.code {
		key = binary.LittleEndian.AppendUint32(key, at)
	}
	if known, ok := a.byCode[string(key)]; ok {
		return known
	}
	s.next = slices.Repeat([]int32{unmade}, len(a.sample))
	a.byCode[string(key)] = int32(len(a.states))
	a.states = append(a.states, s)
	return int32(len(a.states) - 1)
}

// step returns the state after a unit.
func (a *automaton) step(from int32, unit uint16) int32 {
	class := a.class[unit]
	to := a.states[from].next[class]
	if to == unmade {
		var reached []uint32
		for _, at := range a.states[from].code {
			if inst := a.code[at]; isSet(inst.Op) && inst.MatchRune(a.sample[class]) {
				reached = append(reached, inst.Out)
			}
		}
		to = a.state(reached)
		a.states[from].next[class] = to
	}
	return to
}
