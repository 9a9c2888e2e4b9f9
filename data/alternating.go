package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
)

// Alternating is a training stream whose batches are of pairs and of sentences in turn: a batch of pairs, then Every
// batches of sentences (MCSE, Zhang et al. 2022). Rows of sentences have zeros in the columns of images; the column
// batch.Paired tells both apart. An epoch is one of the pairs, of whole batches. After a bad sample, in whose place the
// loader takes the next one, batches hold some of both until the epoch ends, or for good where a loader does not drop
// its rest (LoaderConfig.DropLast).
type Alternating struct {
	Stream           // of the pairs
	sentences Stream // whose columns are some of those of the pairs
	batch     uint64
	every     uint64
}

// NewAlternating returns the stream of batches of the given size, every >= 1.
func NewAlternating(pairs, sentences Stream, batchSize, every int) (Stream, error) {
	if batchSize < 1 || every < 1 {
		return nil, fmt.Errorf("data: batches of %d, of which %d are of sentences for each of pairs: want at least 1",
			batchSize, every)
	}
	if pairs.EpochSamples() < batchSize {
		return nil, fmt.Errorf("data: an epoch of %d pairs fills no batch of %d: use a smaller train.batch_size",
			pairs.EpochSamples(), batchSize)
	}
	a := Alternating{pairs, sentences, uint64(batchSize), uint64(every)}
	if t, ok := pairs.(Towered); ok {
		return alternatingTowers{a, t}, nil
	}
	return a, nil
}

// alternatingTowers is an Alternating whose images may be kept as what a frozen tower made of them.
type alternatingTowers struct {
	Alternating
	towered Towered
}

var (
	_ Towered     = alternatingTowers{}
	_ timedStream = Alternating{}
)

// ImageInputs implements Towered.
func (a alternatingTowers) ImageInputs() (TowerInputs, bool) { return a.towered.ImageInputs() }

// TextInputs implements Towered.
func (a alternatingTowers) TextInputs() TowerInputs { return a.towered.TextInputs() }

// UseTowers implements Towered.
func (a alternatingTowers) UseTowers(images, texts batch.Pool) { a.towered.UseTowers(images, texts) }

// Columns are those of the pairs, and batch.Paired.
func (a Alternating) Columns() []Column {
	return append(a.Stream.Columns(), Column{Name: batch.Paired, Type: batch.Int32})
}

// EpochSamples is a multiple of the batch size.
func (a Alternating) EpochSamples() int {
	batches := uint64(a.Stream.EpochSamples()) / a.batch
	return int(batches * (a.every + 1) * a.batch)
}

// at is which sample of the pairs, or else of the sentences, sample c is.
func (a Alternating) at(c uint64) (k uint64, paired bool) {
	n, place := c/a.batch, c%a.batch
	cycle, turn := n/(a.every+1), n%(a.every+1)
	if turn == 0 {
		return cycle*a.batch + place, true
	}
	return (cycle*a.every+turn-1)*a.batch + place, false
}

// Sample implements Stream.
func (a Alternating) Sample(c uint64, row batch.Row) error { return a.SampleTimed(c, row, nil) }

// SampleTimed is Sample and adds to w, if not nil, what each stage took.
func (a Alternating) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	k, paired := a.at(c)
	if paired {
		row.Set(batch.Paired, 1)
		return sampleTimed(a.Stream, k, row, w)
	}
	row.Clear()
	return sampleTimed(a.sentences, k, row, w)
}

// Describe implements Described.
func (a Alternating) Describe(c uint64) (caption string, imageID int64, err error) {
	k, paired := a.at(c)
	if !paired {
		caption, _, err = Describe(a.sentences, k)
		return caption, -1, err
	}
	return Describe(a.Stream, k)
}

// Overfit returns the first n samples of s, over and over: the same images,
// crops and captions (a model that cannot learn these by heart has a fault).
func Overfit(s Stream, n int) (Stream, error) {
	if n <= 0 {
		return nil, fmt.Errorf("data: number of samples to overfit must be > 0 (got %d)", n)
	}
	return overfit{s, uint64(n)}, nil
}

type overfit struct {
	Stream
	n uint64
}

func (o overfit) Sample(c uint64, row batch.Row) error { return o.Stream.Sample(c%o.n, row) }

func (o overfit) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	return sampleTimed(o.Stream, c%o.n, row, w)
}

func (o overfit) EpochSamples() int { return int(o.n) }

func (o overfit) Describe(c uint64) (string, int64, error) { return Describe(o.Stream, c%o.n) }

// Account is that of the pairs and of the sentences together.
func (a Alternating) Account() *account.Account {
	sum := account.New()
	sum.Add(account.Of(a.Stream))
	sum.Add(account.Of(a.sentences))
	return sum
}
