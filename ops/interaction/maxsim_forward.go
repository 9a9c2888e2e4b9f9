package interaction

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Pairs are worked on in blocks: so many tokens of texts, or those of one text, against one
// image after the other of so many. Threads share blocks, so that results do not depend on
// their number.
const (
	blockTokens = 256
	blockImages = 16
)

// blockTexts returns the texts of a block.
func (x *maxSim) blockTexts() int { return max(1, blockTokens/x.sides[1].len) }

// floats is the memory of a thread for tokens of so many channels.
func (x *maxSim) floats(channels int) int {
	t, columns := x.sides[0].len, x.blockTexts()*x.sides[1].len
	return columns*channels + t*columns + x.sides[1].len
}

// work is a thread's memory.
type work struct {
	texts    []float32 // the tokens of a block that take part, one after the other
	products []float32 // (tokens of an image, those tokens)
	best     []float32 // (L) of a pair
}

func (x *maxSim) worker(c *exec.Call, i int) work {
	channels, columns := c.In[0].Dim(1), x.blockTexts()*x.sides[1].len
	s := c.Scratch[i*x.floats(channels):][:x.floats(channels)]
	a, b := columns*channels, len(s)-x.sides[1].len
	return work{s[:a], s[a:b], s[b:]}
}

func (x *maxSim) host(c *exec.Call) (exec.Step, error) {
	n, m := c.Out.Dim(0), c.Out.Dim(1)
	size := x.blockTexts()
	textBlocks, imageBlocks := (m+size-1)/size, (n+blockImages-1)/blockImages
	body := func(worker, lo, hi int) {
		w := x.worker(c, worker)
		for b := lo; b < hi; b++ {
			j, i := b/imageBlocks*size, b%imageBlocks*blockImages
			x.block(c, w, i, min(i+blockImages, n), j, min(j+size, m))
		}
	}
	return func() error {
		for _, s := range x.sides {
			if err := s.check(c); err != nil {
				return err
			}
		}
		c.Engine.For(textBlocks*imageBlocks, 1, body)
		return nil
	}, nil
}

// block scores images [i, iEnd) with texts [j, jEnd).
func (x *maxSim) block(c *exec.Call, w work, i, iEnd, j, jEnd int) {
	images, texts := x.sides[0], x.sides[1]
	channels, columns := c.In[0].Dim(1), 0
	for k := j; k < jEnd; k++ {
		lo, hi := texts.span(c, k)
		copy(w.texts[columns*channels:], c.In[1].F32[(k*texts.len+lo)*channels:(k*texts.len+hi)*channels])
		columns += hi - lo
	}
	for ; i < iEnd; i++ {
		lo, hi := images.span(c, i)
		if hi > lo && columns > 0 {
			c.Engine.GemmSerial(false, true, hi-lo, columns, channels, 1, c.In[0].F32[(i*images.len+lo)*channels:],
				channels, w.texts, channels, 0, w.products, columns)
		}
		from := 0
		for k := j; k < jEnd; k++ {
			l, end := texts.span(c, k)
			x.pair(c, w, i, k, w.products[from:], columns, hi-lo, end-l)
			from += end - l
		}
	}
}

// pair sets the score of image i and text j from the products of t tokens of the image with l
// of the text, in rows of stride values.
func (x *maxSim) pair(c *exec.Call, w work, i, j int, products []float32, stride, t, l int) {
	var sum float64
	m := c.Out.Dim(1)
	if s := x.sides[0]; s.places >= 0 {
		places := c.Aux[s.places].I32[s.at(i, j, m):][:s.len]
		none(places)
		for k := 0; k < t && l > 0; k++ {
			row := products[k*stride:][:l]
			best := vector.ArgMax(row)
			places[s.first+k] = int32(x.sides[1].first + best)
			sum += float64(c.In[s.weights].F32[i*s.len+s.first+k]) * float64(row[best])
		}
	}
	if s := x.sides[1]; s.places >= 0 {
		places := c.Aux[s.places].I32[s.at(i, j, m):][:s.len]
		none(places)
		if t > 0 {
			best, at := w.best[:l], places[s.first:][:l]
			columnMaxima(best, at, products, stride, t, int32(x.sides[0].first))
			for k, v := range best {
				sum += float64(c.In[s.weights].F32[j*s.len+s.first+k]) * float64(v)
			}
		}
	}
	c.Out.F32[i*m+j] = float32(sum)
}

// none sets places to -1, that of no token.
func none(places []int32) {
	for i := range places {
		places[i] = -1
	}
}

// columnMaxima sets best to the largest values of columns of t rows of x, and at to their rows,
// numbered from first.
func columnMaxima(best []float32, at []int32, x []float32, stride, t int, first int32) {
	copy(best, x[:len(best)])
	for k := range at {
		at[k] = first
	}
	for r := 1; r < t; r++ {
		for k, v := range x[r*stride:][:len(best)] {
			if v > best[k] {
				best[k], at[k] = v, first+int32(r)
			}
		}
	}
}
