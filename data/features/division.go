package features

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/rng"
)

// Hold says which images are held out of training.
type Hold string

// Values of Hold.
const (
	Random Hold = "random" // drawn by the seed of the splits
	Last   Hold = "last"   // the last rows of the file: the test split is the end, the validation split lies before it
)

// Division says how pairs are divided. Whole images are held out, with all their texts.
type Division struct {
	ValSamples, TestSamples int // images of these splits; training has the others
	Hold                    Hold
	Seed                    uint64 // of the splits; 0: that of the run
	// Paired is the number of pairs of training that may be used as pairs, drawn by the seed
	// of the run; 0: all. Of one seed a smaller budget is a part of a larger one.
	Paired int
}

// Names of the random numbers that divide the pairs.
const (
	splitStream  = "pairs/split"
	budgetStream = "pairs/budget"
)

// check refuses what cannot be meant.
func (d Division) check() error {
	switch {
	case d.ValSamples < 0 || d.TestSamples < 0 || d.Paired < 0:
		return fmt.Errorf("features: val_samples, test_samples and paired must be >= 0 (got %d, %d and %d)",
			d.ValSamples, d.TestSamples, d.Paired)
	case d.Hold != "" && d.Hold != Random && d.Hold != Last:
		return fmt.Errorf("features: hold must be %q or %q (got %q)", Random, Last, string(d.Hold))
	}
	return nil
}

// divide makes the splits of pairs, which are sorted by image. Images are taken in a
// permutation that depends on the seed and their number, or from the last: the first
// TestSamples are the test split, the next ValSamples the validation split, the others are for
// training. path is the file that lists them, for errors.
func (d Division) divide(list []Pair, path string, seed uint64) (map[string][]Pair, error) {
	starts := imageStarts(list)
	n := len(starts) - 1
	held := d.ValSamples + d.TestSamples
	if held >= n {
		return nil, fmt.Errorf("features: no image is left for training: %s has %d, and data.pairs.val_samples = %d "+
			"and data.pairs.test_samples = %d take %d: lower them", path, n, d.ValSamples, d.TestSamples, held)
	}
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	switch {
	case held == 0:
	case d.Hold == Last:
		slices.Reverse(order)
	default:
		if d.Seed != 0 {
			seed = d.Seed
		}
		rng.New(seed, splitStream, 0).Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	splits := map[string][]Pair{}
	for name, items := range map[string][]int32{"test": order[:d.TestSamples], "val": order[d.TestSamples:held],
		"train": order[held:]} {
		slices.Sort(items) // in the order of the files
		var part []Pair
		for _, i := range items {
			part = append(part, list[starts[i]:starts[i+1]]...)
		}
		splits[name] = part
	}
	return splits, nil
}

// budget returns the pairs of training that may be used as pairs.
func (d Division) budget(train []Pair, seed uint64) ([]Pair, error) {
	switch n := len(train); {
	case d.Paired > n:
		return nil, fmt.Errorf("features: data.pairs.paired = %d is more than the %d pairs of the train split: lower "+
			"it, or use 0 for all", d.Paired, n)
	case d.Paired == 0 || d.Paired == n:
		return train, nil
	}
	part := slices.Clone(train)
	rng.New(seed, budgetStream, 0).Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	part = slices.Clone(part[:d.Paired])
	slices.SortFunc(part, Pair.compare)
	return part, nil
}

// compare sorts pairs by image and then by text.
func (q Pair) compare(r Pair) int {
	if q.Image != r.Image {
		return int(q.Image) - int(r.Image)
	}
	return int(q.Text) - int(r.Text)
}

// imageStarts returns where the pairs of each image begin in pairs that are sorted by image,
// and their end.
func imageStarts(list []Pair) []int32 {
	var starts []int32
	for i, q := range list {
		if i == 0 || q.Image != list[i-1].Image {
			starts = append(starts, int32(i))
		}
	}
	return append(starts, int32(len(list)))
}
