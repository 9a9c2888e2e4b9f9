package exec

import "math"

// Spoil makes op i of the program of m, of m.Nodes, write v over an element of its float result in every
// run, until undo is called. It returns the name of the op, empty where the result is of integers
// or empty. Tests use it to see what a run does about a number that is not finite.
func Spoil(m *Machine, i, element int, v float32) (op string, undo func()) {
	in := &m.prog[i]
	a := in.out.Host()
	if len(a.F32) == 0 && len(a.BF16) == 0 {
		return "", func() {}
	}
	step := in.step
	in.step = func() error {
		if err := step(); err != nil {
			return err
		}
		if err := in.out.Fetch(); err != nil {
			return err
		}
		if a := in.out.Host(); len(a.F32) > 0 {
			a.F32[element%len(a.F32)] = v
		} else {
			a.BF16[element%len(a.BF16)] = uint16(math.Float32bits(v) >> 16)
		}
		return in.out.Store()
	}
	return in.node.Op().String(), func() { in.step = step }
}
