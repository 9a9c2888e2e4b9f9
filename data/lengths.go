package data

import (
	"slices"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/rng"
)

// lengthWindow is the number of batches whose samples are grouped by length with each other, that of group_by_length in
// transformers.
const lengthWindow = 50

// byLength is a stream in another order, in which samples with texts of similar length lie in one batch: a window of
// samples in the order of the stream is sorted by the lengths that a batch may have, samples of one length in their
// order, and its batches stand in random order. Each sample stands in the window that it was in, and what fills no batch
// at the end of an epoch is what it was. After a bad sample, in whose place the loader takes the next one, batches are of
// two neighbouring ones up to the end of the epoch.
type byLength struct {
	Stream
	seed    uint64
	lengths []int
	batch   uint64
	epoch   uint64 // windows end with it; 0: they do not
	window  uint64 // samples

	mu      sync.Mutex
	row     *batch.Batch // of the lengths of texts alone
	windows [2]window    // the two used last: prefetching crosses the border
	last    int          // the one used last
	classes []int        // of the samples of a window
	sorted  []uint32     // they in the order of their classes
}

// window is the order within one window.
type window struct {
	start uint64   // its first position
	from  []uint32 // which of its samples stands at each place; nil: there is no window yet
}

var (
	_ timedStream = (*byLength)(nil)
	_ Described   = (*byLength)(nil)
)

// newByLength returns a stream for batches of c.
func newByLength(s Stream, c LoaderConfig) *byLength {
	o := &byLength{Stream: s, seed: c.Seed, lengths: c.Lengths, batch: uint64(c.BatchSize)}
	o.window = lengthWindow * o.batch
	if c.DropLast {
		o.epoch = uint64(s.EpochSamples())
	}
	var texts []Column
	for _, x := range c.Columns {
		if x.Name == batch.Lengths || x.Name == batch.SecondLengths || x.Name == batch.ThirdLengths {
			texts = append(texts, x)
		}
	}
	o.row = batch.New(1, texts...)
	return o
}

// At is which sample of the stream stands at position c.
func (o *byLength) At(c uint64) uint64 {
	begin, n := uint64(0), o.window
	if o.epoch > 0 {
		begin = c / o.epoch * o.epoch
	}
	start := begin + (c-begin)/o.window*o.window
	if o.epoch > 0 {
		n = min(n, begin+o.epoch-start)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := &o.windows[o.last]; w.start != start || w.from == nil {
		o.last = 1 - o.last
	}
	w := &o.windows[o.last]
	if w.start != start || w.from == nil {
		*w = window{start, o.group(w.from[:0], start, int(n))}
	}
	return start + uint64(w.from[c-start])
}

// group appends the order of n samples from start on to dst.
func (o *byLength) group(dst []uint32, start uint64, n int) []uint32 {
	b := int(o.batch)
	full := n / b * b
	o.classes, o.sorted = o.classes[:0], o.sorted[:0]
	for i := range full {
		o.classes, o.sorted = append(o.classes, o.class(start+uint64(i))), append(o.sorted, uint32(i))
	}
	slices.SortStableFunc(o.sorted, func(x, y uint32) int { return o.classes[x] - o.classes[y] })
	for _, k := range rng.New(o.seed, rng.Lengths, start).Perm(full / b) {
		dst = append(dst, o.sorted[k*b:][:b]...)
	}
	for i := full; i < n; i++ {
		dst = append(dst, uint32(i))
	}
	return dst
}

// class is how many of the lengths the longest text of a sample does not fit into; that of a bad one is any.
func (o *byLength) class(c uint64) int {
	row := o.row.Row(0)
	row.Clear()
	if safely(o.Stream, c, row) != nil {
		return 0
	}
	longest := int32(0)
	for _, x := range o.row.Columns() {
		longest = max(longest, row.Ints(x.Name)[0])
	}
	k, _ := slices.BinarySearch(o.lengths, int(longest))
	return k
}

// Sample implements Stream.
func (o *byLength) Sample(c uint64, row batch.Row) error { return o.Stream.Sample(o.At(c), row) }

// SampleTimed is Sample and adds to w, if not nil, what each stage took.
func (o *byLength) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	return sampleTimed(o.Stream, o.At(c), row, w)
}

// Describe implements Described.
func (o *byLength) Describe(c uint64) (string, int64, error) { return Describe(o.Stream, o.At(c)) }
