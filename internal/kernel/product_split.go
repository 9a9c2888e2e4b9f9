package kernel

// smallProduct is the number of multiplications up to which the built-in kernel
// beats a call of oneDNN: the products of an attention head (65 x 65 x 64 and the
// like gained 10 to 25 % when measured).
const smallProduct = 1 << 19

// A product is split when each part keeps at least this many multiplications:
// some tens of microseconds, well above the cost of waking a thread.
const leastPart = 1 << 20

// Parts begin at multiples of these, so that the tiles of the libraries' kernels
// stay whole.
const (
	rowStep    = 8
	columnStep = 64
)

// splitProduct says how a product is split over threads: along n or m, in how
// many parts, and at multiples of what. It depends on its arguments alone. The
// sum over k is never split, so that each element has one fixed order of sums.
func splitProduct(m, n, k, threads int) (alongN bool, chunks, step int) {
	work := m * n * k
	chunks = min(threads, work/leastPart)
	if chunks <= 1 {
		return false, 1, 1
	}
	// Along the longer side, in units of the step, each part reads least twice.
	rows, columns := (m+rowStep-1)/rowStep, (n+columnStep-1)/columnStep
	if m >= n && rows >= chunks || columns < chunks {
		if rows < 2 {
			return false, 1, 1
		}
		return false, min(chunks, rows), rowStep
	}
	return true, chunks, columnStep
}

// side says along which side of C a product is split over the threads.
type side int

const (
	sideAuto    side = iota // as splitProduct says
	sideRows                // along m
	sideColumns             // along n
)

// sideOf returns what splitProduct says, sideAuto where it does not split.
func sideOf(m, n, k, threads int) side {
	alongN, chunks, _ := splitProduct(m, n, k, threads)
	switch {
	case chunks == 1:
		return sideAuto
	case alongN:
		return sideColumns
	}
	return sideRows
}

// splitAlong is splitProduct along a side, where that has as many steps as there are parts.
func splitAlong(s side, m, n, k, threads int) (alongN bool, chunks, step int) {
	alongN, chunks, step = splitProduct(m, n, k, threads)
	if chunks == 1 || s == sideAuto {
		return alongN, chunks, step
	}
	if s == sideColumns && (n+columnStep-1)/columnStep >= chunks {
		return true, chunks, columnStep
	}
	if s == sideRows && (m+rowStep-1)/rowStep >= chunks {
		return false, chunks, rowStep
	}
	return alongN, chunks, step
}
