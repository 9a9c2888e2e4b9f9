package features

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// PairsConfig names the files of both sides, says which rows are pairs, and divides these.
type PairsConfig struct {
	Image, Text             string // files, see OpenSource
	ImageTensor, TextTensor string // tensors or columns in them; empty: the only one
	ImagePool, TextPool     string // files of further rows of a side, which are in no pair; empty: none
	Index                   string // table of the pairs; empty: row i of one file belongs to row i of the other
	Cache                   string // folder of copies of files that must be converted; empty: they are refused
	// rows that training sees besides samples, and those of fits, are centred: see Pairs.Centres
	Center   bool
	Division // without a table that says the split of each pair
}

// Pair is a row of the image features and the row of the text features that belongs to it.
type Pair struct{ Image, Text int32 }

// Pairs is two matrices and the pairs of their rows. An image may have several texts; a text
// belongs to one image. The id of a pair is the row of its image.
type Pairs struct {
	images, texts *Matrix
	more          [2]*Matrix // further rows of images and texts, nil for none
	seed          uint64
	index         string            // file of the index; empty: rows are in step
	centres       [2]Centre         // of images and texts, nil unless rows are centred
	splits        map[string][]Pair // by rising image row, as far as the budget lets them be used
}

// Convert makes the copies of files that must be converted, see Convert. progress is told of which file
// how much is done, and may be nil.
func (c PairsConfig) Convert(ctx context.Context, progress func(path string, done, of int)) error {
	if progress == nil {
		progress = func(string, int, int) {}
	}
	for _, x := range []struct{ path, tensor string }{{c.Image, c.ImageTensor}, {c.Text, c.TextTensor},
		{c.ImagePool, c.ImageTensor}, {c.TextPool, c.TextTensor}} {
		if x.path == "" {
			continue
		}
		if err := Convert(ctx, x.path, x.tensor, c.Cache,
			func(done, of int) { progress(x.path, done, of) }); err != nil {
			return err
		}
	}
	return nil
}

// Open opens both files and divides the pairs by the seed of the run, see Division. Close it after use.
func Open(c PairsConfig, seed uint64) (*Pairs, error) {
	if err := c.Division.check(); err != nil {
		return nil, err
	}
	images, err := OpenSource(c.Image, c.ImageTensor, c.Cache)
	if err != nil {
		return nil, err
	}
	texts, err := OpenSource(c.Text, c.TextTensor, c.Cache)
	if err != nil {
		return nil, errors.Join(err, images.Close())
	}
	p := &Pairs{images: images, texts: texts, seed: seed, index: c.Index}
	if err := p.open(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// open opens the pools and divides the pairs.
func (p *Pairs) open(c PairsConfig) (err error) {
	if p.more[0], err = openMore(c.ImagePool, c.ImageTensor, c.Cache, p.images); err != nil {
		return err
	}
	if p.more[1], err = openMore(c.TextPool, c.TextTensor, c.Cache, p.texts); err != nil {
		return err
	}
	if err := p.divide(c); err != nil || !c.Center {
		return err
	}
	return p.measure()
}

// divide finds the pairs and makes the splits.
func (p *Pairs) divide(c PairsConfig) (err error) {
	if c.Index == "" {
		p.splits, err = p.inStep(c.Division)
	} else {
		p.splits, err = p.indexed(c.Index, c.Division)
	}
	if err != nil {
		return err
	}
	p.splits["train"], err = c.Division.budget(p.splits["train"], p.seed)
	return err
}

// inStep pairs row i with row i and divides these.
func (p *Pairs) inStep(d Division) (map[string][]Pair, error) {
	n := p.images.Rows()
	if m := p.texts.Rows(); n != m {
		return nil, fmt.Errorf("features: the rows are not in step: %s has %d and %s has %d: row i of both must be one "+
			"pair, so write both from one list, or name a table of the pairs in data.pairs.index",
			p.images.Path(), n, p.texts.Path(), m)
	}
	list := make([]Pair, n)
	for i := range list {
		list[i] = Pair{int32(i), int32(i)}
	}
	return d.divide(list, p.images.Path(), p.seed)
}

// indexed reads the pairs of a table and takes its splits, or divides them.
func (p *Pairs) indexed(path string, d Division) (map[string][]Pair, error) {
	x, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	if err := x.check(p.images, p.texts); err != nil {
		return nil, err
	}
	if x.hasSplits() {
		return x.divide()
	}
	return d.divide(x.pairs(func(entry) bool { return true }), path, p.seed)
}

// Images returns the matrix of the images (N, D).
func (p *Pairs) Images() *Matrix { return p.images }

// Texts returns the matrix of the texts (N, E).
func (p *Pairs) Texts() *Matrix { return p.texts }

// Split returns the pairs of a split (train, val or test), by rising image row. Those of
// training are the ones that the budget allows. It fails for an empty split.
func (p *Pairs) Split(split string) ([]Pair, error) {
	list, ok := p.splits[split]
	switch {
	case !ok:
		return nil, fmt.Errorf("features: there is no split %q: use train, val or test", split)
	case len(list) == 0 && p.index != "":
		return nil, fmt.Errorf("features: the %s split is empty: %s names no pair of it and data.pairs.%s_samples is "+
			"0, so choose another split", split, p.index, split)
	case len(list) == 0:
		return nil, fmt.Errorf("features: the %s split is empty: set data.pairs.%s_samples, or choose another split",
			split, split)
	}
	return list, nil
}

// Close closes all files. Streams, sets and pools of them must not be used any more.
func (p *Pairs) Close() error {
	err := errors.Join(p.images.Close(), p.texts.Close())
	for _, m := range p.more {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	return err
}

// ImagePool returns the images that training may see, paired and not.
func (p *Pairs) ImagePool() (*Pool, error) {
	return newPool(p.images, p.more[0], imageRows(p.held()), p.centres[0])
}

// TextPool returns the texts that training may see, paired and not.
func (p *Pairs) TextPool() (*Pool, error) {
	return newPool(p.texts, p.more[1], textRows(p.held()), p.centres[1])
}

// held returns the pairs of the validation and the test split.
func (p *Pairs) held() []Pair {
	held := slices.Concat(p.splits["val"], p.splits["test"])
	slices.SortFunc(held, Pair.compare)
	return held
}

// imageRows returns the rows of the images of pairs, each once, rising.
func imageRows(pairs []Pair) []int32 {
	rows := make([]int32, len(pairs))
	for i, q := range pairs {
		rows[i] = q.Image
	}
	return slices.Compact(rows)
}

// textRows returns the rows of the texts of pairs, rising.
func textRows(pairs []Pair) []int32 {
	rows := make([]int32, len(pairs))
	for i, q := range pairs {
		rows[i] = q.Text
	}
	slices.Sort(rows)
	return rows
}
