package features

import (
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/rng"
)

// PairsConfig names the two files and divides their rows.
type PairsConfig struct {
	Image, Text             string // files: .npy or .safetensors
	ImageTensor, TextTensor string // tensors of .safetensors files; empty: the only one
	ValSamples, TestSamples int    // rows of these splits, chosen by the seed; training has the others
}

// Pairs is two matrices in step: row i of one belongs to row i of the other.
type Pairs struct {
	images, texts *Matrix
	seed          uint64
	splits        map[string][]int32 // rows, rising
}

// splitStream names the random numbers that divide the rows.
const splitStream = "pairs/split"

// Open opens both files and divides the rows: the first TestSamples of a permutation
// that depends on the seed and the number of rows are the test split, the next ValSamples
// the validation split, the others are for training. Close it after use.
func Open(c PairsConfig, seed uint64) (*Pairs, error) {
	if c.ValSamples < 0 || c.TestSamples < 0 {
		return nil, fmt.Errorf("features: val_samples and test_samples must be >= 0 (got %d and %d)", c.ValSamples, c.TestSamples)
	}
	images, err := OpenMatrix(c.Image, c.ImageTensor)
	if err != nil {
		return nil, err
	}
	texts, err := OpenMatrix(c.Text, c.TextTensor)
	if err != nil {
		return nil, errors.Join(err, images.Close())
	}
	p := &Pairs{images: images, texts: texts, seed: seed}
	if err := p.divide(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// divide makes the splits.
func (p *Pairs) divide(c PairsConfig) error {
	n := p.images.Rows()
	if m := p.texts.Rows(); n != m {
		return fmt.Errorf("features: the rows are not in step: %s has %d and %s has %d: row i of both must be one pair, so write both from one list", p.images.Path(), n, p.texts.Path(), m)
	}
	held := c.ValSamples + c.TestSamples
	if held >= n {
		return fmt.Errorf("features: no row is left for training: %s has %d, and data.pairs.val_samples = %d and data.pairs.test_samples = %d take %d: lower them", p.images.Path(), n, c.ValSamples, c.TestSamples, held)
	}
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	if held > 0 {
		rng.New(p.seed, splitStream, 0).Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	p.splits = map[string][]int32{
		"test":  order[:c.TestSamples:c.TestSamples],
		"val":   order[c.TestSamples:held:held],
		"train": order[held:],
	}
	for _, rows := range p.splits {
		slices.Sort(rows) // in the order of the files
	}
	return nil
}

// Images returns the matrix of the images (N, D).
func (p *Pairs) Images() *Matrix { return p.images }

// Texts returns the matrix of the texts (N, E).
func (p *Pairs) Texts() *Matrix { return p.texts }

// Rows returns the rows of a split (train, val or test), rising. It fails for an empty one.
func (p *Pairs) Rows(split string) ([]int32, error) {
	rows, ok := p.splits[split]
	switch {
	case !ok:
		return nil, fmt.Errorf("features: there is no split %q: use train, val or test", split)
	case len(rows) == 0:
		return nil, fmt.Errorf("features: the %s split is empty: set data.pairs.%s_samples, or choose another split", split, split)
	}
	return rows, nil
}

// Close closes both files. Streams and sets of them must not be used any more.
func (p *Pairs) Close() error { return errors.Join(p.images.Close(), p.texts.Close()) }
