package data

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// Stream is an endless stream of training samples: sample c is a pure function
// of c. Methods may be called from several goroutines.
type Stream interface {
	// Sample writes the image of sample c to dst, planar (3, S, S), and returns
	// its caption and image id. A dst with room for two images asks for two views
	// (2, 3, S, S): the same image, augmented twice independently; the first is the
	// same as without the second. An error means a bad sample: the loader leaves it
	// out and counts it.
	Sample(c uint64, dst []float32) (caption string, imageID int64, err error)
	// EpochSamples is the number of samples that count as one epoch.
	EpochSamples() int
}

// DenseIDs is implemented by streams over a finite set of images: ids numbered
// 0, 1, 2 ... in the order of the data set, for id columns of 32 bits.
type DenseIDs interface {
	DenseID(imageID int64) int32
}

// TrainConfig says how a data set becomes a training stream.
type TrainConfig struct {
	Seed      uint64
	Transform transform.Train
	MaxWords  int  // words kept of a caption; 0: all
	Pairs     bool // every (image, caption) pair is a sample (retrieval fine-tuning); else every image is, with a caption drawn at each access
}

// Train is the training stream of a data set: every epoch is a new permutation.
type Train struct {
	ds    Dataset
	cfg   TrainConfig
	pairs []pair // only with cfg.Pairs
	n     int    // samples of an epoch
	dense map[int64]int32

	mu     sync.Mutex
	orders [2]order // the two epochs used last: prefetching crosses the border
}

type pair struct{ image, caption int32 }

type order struct {
	epoch uint64
	perm  []uint32
}

var (
	_ Stream   = (*Train)(nil)
	_ DenseIDs = (*Train)(nil)
)

// NewTrain returns the training stream of ds. It fails when ds has no sample.
func NewTrain(ds Dataset, cfg TrainConfig) (*Train, error) {
	t := &Train{ds: ds, cfg: cfg, n: ds.Len(), dense: make(map[int64]int32, ds.Len())}
	for i := range ds.Len() {
		if id := ds.ImageID(i); !has(t.dense, id) {
			t.dense[id] = int32(len(t.dense))
		}
		if cfg.Pairs {
			for j := range ds.Captions(i) {
				t.pairs = append(t.pairs, pair{int32(i), int32(j)})
			}
		}
	}
	if cfg.Pairs {
		t.n = len(t.pairs)
	}
	if t.n == 0 {
		return nil, fmt.Errorf("data: the training data has no sample (%d images, %d pairs): check data.captions.train_files", ds.Len(), len(t.pairs))
	}
	if cfg.Transform.Size <= 0 {
		return nil, fmt.Errorf("data: image size must be > 0 (got %d)", cfg.Transform.Size)
	}
	return t, nil
}

func has(m map[int64]int32, k int64) bool { _, ok := m[k]; return ok }

// EpochSamples is the number of images, or of pairs with TrainConfig.Pairs.
func (t *Train) EpochSamples() int { return t.n }

// NumImages is the number of images of the data set.
func (t *Train) NumImages() int { return t.ds.Len() }

// DenseID numbers the image ids in the order of the data set.
func (t *Train) DenseID(imageID int64) int32 { return t.dense[imageID] }

// Sample c: the item at position c mod n of epoch c / n, with its caption drawn
// and its image augmented by the generators (seed, caption, c) and (seed,
// augment, c), the second view by (seed, augment/2, c).
func (t *Train) Sample(c uint64, dst []float32) (string, int64, error) {
	return t.SampleTimed(c, dst, nil)
}

// SampleTimed is Sample and adds to w, if not nil, what each stage took.
func (t *Train) SampleTimed(c uint64, dst []float32, w *Stopwatch) (string, int64, error) {
	w.start()
	i, j := t.item(c)
	captions := t.ds.Captions(i)
	if len(captions) == 0 {
		return "", 0, fmt.Errorf("data: %s: no caption, or only empty ones", t.ds.Name(i))
	}
	if j < 0 {
		j = 0
		if len(captions) > 1 {
			j = rng.New(t.cfg.Seed, rng.Caption, c).IntN(len(captions))
		}
	}
	caption := CleanCaption(captions[j], t.cfg.MaxWords)
	if caption == "" {
		return "", 0, fmt.Errorf("data: %s: caption %d is empty", t.ds.Name(i), j)
	}
	w.lap(StageText)
	img, err := imageOf(t.ds, i, w)
	if err != nil {
		return "", 0, err
	}
	w.saw(img)
	if err := t.cfg.applyViews(img, c, dst, w); err != nil {
		return "", 0, fmt.Errorf("%s: %w", t.ds.Name(i), err)
	}
	w.start()
	return caption, t.ds.ImageID(i), nil
}

// item is the image of sample c and which of its captions it has, -1 for any.
func (t *Train) item(c uint64) (image, caption int) {
	k := t.perm(c / uint64(t.n))[c%uint64(t.n)]
	if t.cfg.Pairs {
		return int(t.pairs[k].image), int(t.pairs[k].caption)
	}
	return int(k), -1
}

// perm is the order of one epoch.
func (t *Train) perm(epoch uint64) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &t.orders[epoch%2]
	if o.perm == nil || o.epoch != epoch {
		// A new slice each time: other goroutines may still read the old one.
		o.epoch, o.perm = epoch, permutation(rng.New(t.cfg.Seed, rng.Order, epoch), t.n)
	}
	return o.perm
}

func permutation(r *rand.Rand, n int) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(i)
	}
	r.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
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

func (o overfit) Sample(c uint64, dst []float32) (string, int64, error) {
	return o.Stream.Sample(c%o.n, dst)
}

func (o overfit) SampleTimed(c uint64, dst []float32, w *Stopwatch) (string, int64, error) {
	return sampleTimed(o.Stream, c%o.n, dst, w)
}

func (o overfit) EpochSamples() int { return int(o.n) }

func (o overfit) DenseID(id int64) int32 { return denseID(o.Stream, id) }

// denseID is the 32-bit id of an image: its dense number where the stream has
// them; else the id itself where it fits, else 31 bits of its hash (a row then
// agrees by chance with one of 65,536 queue entries once in 30,000 times).
func denseID(s Stream, id int64) int32 {
	if d, ok := s.(DenseIDs); ok {
		return d.DenseID(id)
	}
	if id >= 0 && id < 1<<31 {
		return int32(id)
	}
	// Finaliser of SplitMix64 (Steele, Lea and Flood 2014).
	x := uint64(id)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int32((x ^ x>>31) >> 33)
}
