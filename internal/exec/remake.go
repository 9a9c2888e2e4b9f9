package exec

// Remaker is an op whose output has the bits of its last operand, which it makes again from the others, so that the
// last operand need not be kept for what reads the output. The op never reads it.
//
// The plan takes the op where products are in bfloat16, and the operand where they are in float32: there memory is no
// more than what others need for the same step, and making GELUs and normed sums again took 1.7 % of one.
type Remaker interface {
	// Remakes says whether the op is one, on a device of that name, empty: on the host. Where it is none its operand is
	// kept.
	Remakes(device string) bool
}

// remake settles for each Remaker whether it runs, and so what the program needs. keep holds the ids of nodes whose
// values somebody outside of the program reads: they are computed.
func remake(items []item, keep map[int64]bool, run bool, device string) []item {
	instead := map[int]int{} // the operand of an op that does not run
	for i, it := range items {
		for k, j := range it.in {
			if operand, ok := instead[j]; ok {
				it.in[k] = operand
			}
		}
		r, ok := it.node.Op().(Remaker)
		if !ok || !r.Remakes("") {
			continue
		}
		run := run && r.Remakes(device)
		last := len(it.in) - 1
		if !run && !keep[it.node.ID()] {
			instead[i] = it.in[last]
		}
		items[i].in = it.in[:last]
	}
	return prune(items, keep)
}
