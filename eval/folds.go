package eval

import "fmt"

// Fold is a part of a gallery that is evaluated on its own.
type Fold struct {
	First, Images int             // images First to First+Images-1 of the gallery
	Texts         []int           // their texts, ascending, as indices of the gallery
	Corr          *Correspondence // of the fold's own indices
}

// Folds cuts a gallery into n folds of consecutive images with their texts. Right answers
// in other folds do not count. The number of images must be a multiple of n.
func (c *Correspondence) Folds(n int) ([]Fold, error) {
	if n < 1 || c.NumImages()%n != 0 {
		return nil, fmt.Errorf("eval: %d images cannot be cut into %d equal folds: choose a divisor", c.NumImages(), n)
	}
	size := c.NumImages() / n
	folds := make([]Fold, n)
	for f := range folds {
		folds[f] = Fold{First: f * size, Images: size}
	}
	owners := make([][]int, n) // of each fold's texts, as indices of the fold
	for j, i := range c.imageOf {
		f := i / size
		folds[f].Texts = append(folds[f].Texts, j)
		owners[f] = append(owners[f], i%size)
	}
	for i := range folds {
		f := &folds[i]
		var err error
		if f.Corr, err = NewCorrespondence(c.imageID[f.First:f.First+size], owners[i]); err != nil {
			return nil, err
		}
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
