package geometric

import "math"

// nearest keeps the best of the items that it is shown, as a heap whose root is the worst
// one kept. An item is better with a larger value, of equal values with a lower index: no
// two are equal, so what is kept does not depend on the order in which items come.
type nearest struct {
	value []float32
	index []int32
	n     int // kept so far
}

// push shows an item. A value that is not a number counts as -Inf.
func (h *nearest) push(v float32, i int32) {
	if v-v != 0 {
		v = float32(math.Inf(-1))
	}
	if h.n < len(h.value) {
		h.value[h.n], h.index[h.n] = v, i
		h.n++
		for at := h.n - 1; at > 0; {
			up := (at - 1) / 2
			if !h.worse(at, up) {
				return
			}
			h.swap(at, up)
			at = up
		}
		return
	}
	if v > h.value[0] || v == h.value[0] && i < h.index[0] {
		h.value[0], h.index[0] = v, i
		h.sink()
	}
}

// sort orders the kept items from best to worst. Nothing may be pushed afterwards.
func (h *nearest) sort() {
	n := h.n
	for h.n > 1 {
		h.n--
		h.swap(0, h.n)
		h.sink()
	}
	h.n = n
}

// sink moves the root down to its place.
func (h *nearest) sink() {
	for at := 0; ; {
		worst := at
		for child := 2*at + 1; child <= 2*at+2 && child < h.n; child++ {
			if h.worse(child, worst) {
				worst = child
			}
		}
		if worst == at {
			return
		}
		h.swap(at, worst)
		at = worst
	}
}

func (h *nearest) worse(i, j int) bool {
	return h.value[i] < h.value[j] || h.value[i] == h.value[j] && h.index[i] > h.index[j]
}

func (h *nearest) swap(i, j int) {
	h.value[i], h.value[j] = h.value[j], h.value[i]
	h.index[i], h.index[j] = h.index[j], h.index[i]
}
