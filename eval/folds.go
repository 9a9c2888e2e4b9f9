package eval

import "fmt"

// Fold is a part of a gallery that is evaluated on its own.
type Fold struct {
	First, Images int             // images First to First+Images-1 of the gallery
	Texts         []int           // their texts, ascending, as indices of the gallery
	Corr          *Correspondence // of the fold's own indices
}

// Folds cuts a gallery into n folds of consecutive images with their texts.
// The number of images must be a multiple of n.
func (c *Correspondence) Folds(n int) ([]Fold, error) {
	if n < 1 || c.NumImages()%n != 0 {
		return nil, fmt.Errorf("eval: %d images cannot be cut into %d equal folds: choose a divisor", c.NumImages(), n)
	}
	size := c.NumImages() / n
	folds := make([]Fold, n)
	for f := range folds {
		folds[f] = Fold{First: f * size, Images: size, Corr: &Correspondence{textsOf: make([][]int, size)}}
	}
	for j, i := range c.imageOf {
		f := &folds[i/size]
		own := i % size
		f.Corr.textsOf[own] = append(f.Corr.textsOf[own], len(f.Texts))
		f.Corr.imageOf = append(f.Corr.imageOf, own)
		f.Texts = append(f.Texts, j)
	}
	return folds, nil
}

// Source restricts a source of the whole gallery to the fold. It asks whole for
// full rows and keeps the fold's texts.
func (f Fold) Source(whole Source, texts int) Source {
	var block []float32
	return func(row, n int, dst []float32) error {
		if cap(block) < n*texts {
			block = make([]float32, n*texts)
		}
		block = block[:n*texts]
		if err := whole(f.First+row, n, block); err != nil {
			return err
		}
		for r := range n {
			out := dst[r*len(f.Texts):]
			for k, j := range f.Texts {
				out[k] = block[r*texts+j]
			}
		}
		return nil
	}
}

// FoldMetrics ranks each of n folds on its own and returns the mean of every
// metric over the folds, and the folds' own metrics. COCO's 1K protocol is five
// folds of the 5,000 test images, its 5K protocol the whole gallery ([Rank]).
// The recalls are averaged first and then summed into rsum.
func FoldMetrics(c *Correspondence, n, chunk int, source Source) (Metrics, []Metrics, error) {
	folds, err := c.Folds(n)
	if err != nil {
		return Metrics{}, nil, err
	}
	each := make([]Metrics, n)
	for i, f := range folds {
		ranks, err := Rank(f.Corr, chunk, f.Source(source, c.NumTexts()))
		if err != nil {
			return Metrics{}, nil, fmt.Errorf("eval: fold %d: %w", i, err)
		}
		each[i] = ranks.Metrics()
	}
	return Mean(each), each, nil
}
