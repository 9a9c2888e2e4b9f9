package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var sequencesSource = cuda.NewSource(files, "sequences", "rows.cuh", "sequences.cu")

// AddRepeated adds the first l rows of operand 1 to every l rows of operand 0.
func AddRepeated(l int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		p := pieceOf(cols)
		k := cuda.Load(c, sequencesSource, "add_repeated", cuda.Value("PIECE", p), cuda.Is("COPY", false))
		return func() { k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.In[0], c.In[1], rows, cols, l) }
	})
}

// sequenceCopy makes of each sequence first rows of operand head and then count rows of operand 0, without skip rows
// before each of its sequences.
type sequenceCopy struct{ head, first, count, skip int }

func (s sequenceCopy) prepare(c *exec.DeviceCall) cuda.Step {
	rows, cols := sizeOf(c.Out)
	p := pieceOf(cols)
	k := cuda.Load(c, sequencesSource, "copy_sequences", cuda.Value("PIECE", p), cuda.Is("COPY", true),
		cuda.Type("X", c.In[0]), cuda.Type("Y", c.Out))
	return func() {
		k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.In[0], c.In[s.head], rows, cols, s.first, s.count, s.skip)
	}
}

// Drop leaves out skip rows before each count of operand 0.
func Drop(count, skip int) cuda.Steps {
	return cuda.OnWith(exec.Half{Writes: []int{output}}, sequenceCopy{count: count, skip: skip}.prepare)
}

// Prepend puts operand 1 before each p rows of operand 0.
func Prepend(p int) cuda.Steps {
	return cuda.OnWith(exec.Half{Reads: []int{0}}, func(c *exec.DeviceCall) cuda.Step {
		return sequenceCopy{head: 1, first: c.In[1].Shape.TotalSize() / c.In[0].Shape[1], count: p}.prepare(c)
	})
}

// Repeat repeats operand 0.
func Repeat() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step { return sequenceCopy{first: c.In[0].Shape[0]}.prepare(c) })
}

// SumSequences sums rows 0 to l, of rows, of all sequences; what the result has more is 0.
func SumSequences(l, rows int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, cols := c.In[0].Shape[0]/rows, c.In[0].Shape[1]
		total, p := c.Out.Shape.TotalSize(), pieceOf(cols)
		k := cuda.Load(c, sequencesSource, "sum_sequences", cuda.Value("PIECE", p), cuda.Is("COPY", false))
		return func() {
			k.Enqueue(cuda.Grid{X: cuda.Blocks(total, 32*p), Threads: 256}, c.Out, c.In[0], n, int64(l*cols),
				int64(rows*cols), int64(total))
		}
	})
}

// Sinusoids is the step of the table of sinusoids of l positions.
func Sinusoids(l, d int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.Out.Shape.TotalSize()
		k := cuda.Load(c, sequencesSource, "sinusoids", cuda.Value("PIECE", 1), cuda.Is("COPY", false))
		return func() { k.Enqueue(cuda.Grid{X: cuda.Blocks(n/2, 256), Threads: 256}, c.Out, int64(n), d, l) }
	})
}

// LogPlaces is the step of the logarithms of the numbers of l places.
func LogPlaces(l, d int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n := c.Out.Shape.TotalSize()
		k := cuda.Load(c, sequencesSource, "log_places", cuda.Value("PIECE", 1), cuda.Is("COPY", false))
		return func() { k.Enqueue(cuda.Grid{X: cuda.Blocks(n, 256), Threads: 256}, c.Out, int64(n), d, l) }
	})
}
