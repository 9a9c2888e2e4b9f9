package oncuda

import (
	"math"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var (
	dropoutSource     = cuda.NewSource(files, "dropout", "rows.cuh", "dropout.cu")
	dropoutBitsMacros = []cuda.Macro{cuda.Value("PIECE", 1), cuda.Is("DROPOUT", false)}
)

// dropoutThreshold is that of 16 random bits below which an element is kept, see vector.DropoutBits.
func dropoutThreshold(keep float32) uint32 {
	return uint32(math.Round(65536 * math.Max(0, math.Min(float64(keep), 1))))
}

// wordGrid has a thread for each word of bits.
func wordGrid(n int) cuda.Grid { return cuda.Grid{X: cuda.Blocks(n, 128), Threads: 128} }

// DropoutBits is the step of random bits, for rows of so many words, from a stream of them.
func DropoutBits(stream uint64, words int, keep float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, n := cuda.Load(c, dropoutSource, "dropout_bits", dropoutBitsMacros...), c.Out.Shape.TotalSize()
		return func() {
			k.Enqueue(wordGrid(n), c.Out, c.In[0], c.In[0].Shape[0] == 3, stream, dropoutThreshold(keep),
				words, int64(n))
		}
	})
}

// DropoutShare makes the bits of rows in runs of part words.
func DropoutShare(stream uint64, n, stacks, words int, keep float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k, all, runs := cuda.Load(c, dropoutSource, "dropout_share", dropoutBitsMacros...), c.Out.Shape.TotalSize(),
			stacks
		if len(c.In) == 3 {
			runs = c.In[2].Shape[0]
		}
		return func() {
			var places any
			if len(c.In) == 3 {
				places = c.In[2]
			}
			k.Enqueue(wordGrid(all), c.Out, c.In[0], c.In[1], places, stream, dropoutThreshold(keep),
				int64(n/runs*words), int64(all))
		}
	})
}

// Dropout is the step of an elementwise dropout by these bits.
func Dropout(keep float32) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := sizeOf(c.In[0])
		p := pieceOf(cols)
		k := cuda.Load(c, dropoutSource, "dropout", cuda.Value("PIECE", p), cuda.Is("DROPOUT", true),
			cuda.Type("Y", c.Out),
			cuda.Is("ACCUMULATE", c.Accumulate))
		return func() { k.Enqueue(pieceGrid(rows, cols, p), c.Out, c.In[0], c.In[1], rows, cols, 1/keep) }
	})
}
