package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var partSumsSource = cuda.NewSource(files, "part sums", "partsums.cu")

// output stands for an op's output in exec.Half.
const output = -1

// Zeros is the step of a result of zeros.
func Zeros() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return func() { cuda.Zero(c.Out) } })
}

// pieceOf returns the neighbours that a thread takes at once from rows whose lengths and beginnings these are.
func pieceOf(sizes ...int) int {
	for _, n := range sizes {
		if n%4 != 0 {
			return 1
		}
	}
	return 4
}

// sizeOf returns the rows and columns of a matrix.
func sizeOf(o exec.Operand) (rows, cols int) { return o.Shape[0], o.Shape[1] }

// rowLayout is how threads keep a row in registers: a warp, of which a block has 4, or a block.
type rowLayout struct{ cols, piece, threads, pieces int }

// layoutOf returns the layout of rows of cols columns for blocks of at most so many threads; false: they are too long.
func layoutOf(cols, most int) (rowLayout, bool) {
	l := rowLayout{cols: cols, piece: pieceOf(cols)}
	for _, l.threads = range []int{32, 128, 256, 512, 1024} {
		l.pieces = cuda.Blocks(cols, l.piece*l.threads)
		if l.threads > most {
			return l, false
		}
		if l.piece*l.pieces <= 32 {
			break
		}
	}
	if l.piece == 1 { // few kinds of kernels
		for n := 1; ; n *= 2 {
			if n >= l.pieces {
				l.pieces = n
				break
			}
		}
	}
	return l, l.piece*l.pieces <= 32
}

func (l rowLayout) macros(more ...cuda.Macro) []cuda.Macro {
	return append([]cuda.Macro{cuda.Value("PIECE", l.piece), cuda.Value("PIECES", l.pieces),
		cuda.Value("THREADS", l.threads),
		cuda.Is("EXACT", l.piece*l.pieces*l.threads == l.cols)}, more...)
}

// grid has every row once.
func (l rowLayout) grid(rows int) cuda.Grid {
	if l.threads == 32 {
		return cuda.Grid{X: cuda.Blocks(rows, 4), Threads: 128}
	}
	return cuda.Grid{X: rows, Threads: l.threads}
}

// sumParts enqueues the sums a and b (cols) over n parts (n, 2, cols).
func sumParts(k *cuda.Kernel, a, b exec.Operand, parts cuda.Pointer, n, cols int) {
	k.Enqueue(cuda.Grid{X: cuda.Blocks(2*cols, 32), Threads: 1024}, a, b, parts, n, cols)
}

// pieceGrid has a warp for 8 pieces of each lane of a row, and blocks of 8 rows.
func pieceGrid(rows, cols, piece int) cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(rows, 8), Y: cuda.Blocks(cols, 256*piece), Threads: 256}
}
