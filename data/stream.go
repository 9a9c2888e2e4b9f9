package data

import (
	"fmt"
	"io"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// Stream is an endless stream of training samples: sample c is a pure function
// of c. Methods may be called from several goroutines.
type Stream interface {
	// Columns returns what a sample can hold.
	Columns() []Column
	// Sample writes every column of row, which are some of Columns; row gives nil for
	// the others, and the work for them is left out. What a column holds does not
	// depend on which others are asked for. An error means a bad sample: the loader
	// leaves it out and counts it.
	Sample(c uint64, row batch.Row) error
	// EpochSamples is the number of samples that count as one epoch.
	EpochSamples() int
}

// Column says what a batch holds under a name.
type Column = batch.Column

// Pooled is implemented by streams whose samples name rows of pools, in the columns
// batch.ImageNeighbours and batch.TextNeighbours.
type Pooled interface {
	// Pools returns the pools of both sides, nil where no column names rows of one.
	Pools() (image, text batch.Pool)
}

// Centred is implemented by streams of stored features.
type Centred interface {
	// Centres returns the means of the features of both sides, nil where they are not wanted.
	Centres() (images, texts []float32)
}

// Described is implemented by streams whose samples can be told to people.
type Described interface {
	// Describe returns the caption of sample c, cleaned, and the id of its image as in
	// the source. It reads no image.
	Describe(c uint64) (caption string, imageID int64, err error)
}

// Describe returns the caption and the image id of sample c of a stream, or an error
// where the stream is not Described.
func Describe(s Stream, c uint64) (caption string, imageID int64, err error) {
	if d, ok := s.(Described); ok {
		return d.Describe(c)
	}
	return "", 0, fmt.Errorf("data: %T has no captions to show", s)
}

// TrainConfig says how a data set becomes a training stream.
type TrainConfig struct {
	Seed      uint64
	Transform transform.Train
	Crops     Crops  // small views beside those of Transform
	Text      *Texts // the columns of captions; nil: none
	MaxWords  int    // words kept of a caption; 0: all
	Clean     string // rule by which captions are cleaned, see Clean
	// Identities makes batches of some identities with some images each.
	Identities IdentityConfig
	// every (image, caption) pair is a sample (retrieval fine-tuning); else every image is, with a caption drawn at
	// each access
	Pairs bool
}

// Crops are Count small views of an image, of Size pixels a side and with shares of the area from ScaleMin to ScaleMax,
// which pass the other steps of TrainConfig.Transform too.
type Crops struct {
	Count, Size        int
	ScaleMin, ScaleMax float64
}

// Train is the training stream of a data set: every epoch is a new permutation.
type Train struct {
	ds    Dataset
	cfg   TrainConfig
	pairs []pair // only with cfg.Pairs
	n     int    // samples of an epoch
	dense denseIDs
	order ordering

	identities IdentityCounts // of an order by identities
	towers     towerColumns
	firsts     []int32 // caption rows before each image, see TextInputs; nil before its call
}

// ordering says which of a finite number of samples stands at each position.
type ordering interface{ At(c uint64) int }

type pair struct{ image, caption int32 }

var (
	_ Stream    = (*Train)(nil)
	_ Described = (*Train)(nil)
)

// NewTrain returns the training stream of ds. It fails when ds has no sample.
func NewTrain(ds Dataset, cfg TrainConfig) (*Train, error) {
	t := &Train{ds: ds, cfg: cfg, n: ds.Len(), dense: newDenseIDs(ds)}
	byIdentity := cfg.Identities.Images > 0
	var parts []int // first samples of the parts
	mixed := 0
	if p, ok := ds.(Parted); ok {
		parts, mixed = p.Parts()
	}
	if cfg.Pairs && !byIdentity {
		var firsts []int
		for i := range ds.Len() {
			for len(firsts) < len(parts) && parts[len(firsts)] == i { // a part may be empty
				firsts = append(firsts, len(t.pairs))
			}
			for j := range numCaptions(ds, i) {
				t.pairs = append(t.pairs, pair{int32(i), int32(j)})
			}
		}
		for len(firsts) < len(parts) {
			firsts = append(firsts, len(t.pairs))
		}
		t.n, parts = len(t.pairs), firsts
	}
	if t.n == 0 {
		return nil, fmt.Errorf("data: the training data has no sample (%d images, %d pairs): check the files of the "+
			"train split", ds.Len(), len(t.pairs))
	}
	if cfg.Transform.Size <= 0 {
		return nil, fmt.Errorf("data: image size must be > 0 (got %d)", cfg.Transform.Size)
	}
	if err := cfg.Text.check(); err != nil {
		return nil, err
	}
	if !byIdentity {
		t.order = newPartOrder(cfg.Seed, t.n, parts, mixed)
		return t, nil
	}
	o, counts, err := newIdentityOrder(cfg.Seed, t.n, t.dense.count(t.n),
		func(i int) int32 { return t.dense.of(ds.ImageID(i)) }, cfg.Identities)
	if err != nil {
		return nil, err
	}
	t.order, t.n, t.identities = o, o.samples(), counts
	return t, nil
}

// Close closes the files of the data set, if it holds some open. The stream must not be in use any more.
func (t *Train) Close() error { return closeFiles(t.ds) }

// closeFiles closes the files of a data set that holds some open.
func closeFiles(ds Dataset) error {
	if c, ok := ds.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// numCaptions is the number of captions of image i.
func numCaptions(ds Dataset, i int) int {
	if c, ok := ds.(interface{ NumCaptions(i int) int }); ok {
		return c.NumCaptions(i)
	}
	return len(ds.Captions(i))
}

// EpochSamples is the number of images, of pairs with TrainConfig.Pairs, or of what the visits of an epoch to its
// identities draw.
func (t *Train) EpochSamples() int { return t.n }

// NumImages is the number of images of the data set.
func (t *Train) NumImages() int { return t.ds.Len() }

// Cache is where the images of the data set are kept, nil for nowhere.
func (t *Train) Cache() *Cache {
	if c, ok := t.ds.(Cached); ok {
		return c.Cache()
	}
	return nil
}

// Columns are those of images, of TrainConfig.Text, of what the data set knows of
// an image, and of UseTowers.
func (t *Train) Columns() []Column {
	list := append(t.cfg.columns(columnsOfImages(t.ds, t.cfg.pixels())), t.towers.columns()...)
	return append(list, t.cfg.columnsOfOthers(t.ds)...)
}

// pixels are the columns of pictures.
func (cfg *TrainConfig) pixels() []Column {
	s := []int{3, cfg.Transform.Size, cfg.Transform.Size}
	list := []Column{{Name: batch.Images, Shape: s}, {Name: batch.Views, Shape: s}}
	if n := cfg.Crops; n.Count > 0 {
		list = append(list, Column{Name: batch.Crops, Shape: []int{n.Count, 3, n.Size, n.Size}})
	}
	return list
}

// columns of a stream of images, whose columns are given, with captions.
func (cfg *TrainConfig) columns(images []Column) []Column {
	list := append(images, Column{Name: batch.IDs, Type: batch.Int32}, Column{Name: batch.Labels, Type: batch.Int32})
	return append(list, cfg.Text.Columns()...)
}

// Sample c: the item at position c mod n of epoch c / n, with its caption drawn
// and its image augmented by the generators (seed, caption, c) and (seed,
// augment, c), the second view by (seed, augment/2, c). Its id is the dense number of
// the image's: ids numbered 0, 1, 2 ... in the order of the data set.
func (t *Train) Sample(c uint64, row batch.Row) error { return t.SampleTimed(c, row, nil) }

// SampleTimed is Sample and adds to w, if not nil, what each stage took.
func (t *Train) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	w.Start()
	i, j, caption, err := t.caption(c)
	if err != nil {
		return err
	}
	if err := t.towered(i, j, row); err != nil {
		return err
	}
	id := t.ds.ImageID(i)
	row.Set(batch.IDs, t.dense.of(id))
	row.Set(batch.Labels, labelOf(t.ds, i))
	w.Lap(images.StageText)
	if hasPictures(row) && hasPixels(t.ds) {
		img, err := imageOf(t.ds, i, w)
		if err != nil {
			return err
		}
		w.Saw(img)
		if err := t.cfg.applyViews(img, c, row, w); err != nil {
			return fmt.Errorf("%s: %w", t.ds.Name(i), err)
		}
		w.Start()
	}
	if err := fillImage(t.ds, i, row); err != nil {
		return err
	}
	w.Lap(images.StageRead)
	t.cfg.Text.Fill(caption, row)
	if err := t.cfg.fillOthers(t.ds, i, row); err != nil {
		return err
	}
	w.Lap(images.StageText)
	w.Made()
	return nil
}

// Describe returns the caption of sample c and the id of its image.
func (t *Train) Describe(c uint64) (string, int64, error) {
	i, _, caption, err := t.caption(c)
	if err != nil {
		return "", 0, err
	}
	return caption, t.ds.ImageID(i), nil
}

// caption is the image of sample c, which of its captions the sample has, and that caption.
func (t *Train) caption(c uint64) (image, number int, caption string, err error) {
	i, j := t.item(c)
	captions, err := t.captions(i)
	if err != nil {
		return i, 0, "", err
	}
	if j < 0 {
		j = 0
		if len(captions) > 1 {
			j = rng.New(t.cfg.Seed, rng.Caption, c).IntN(len(captions))
		}
	}
	caption, err = t.cleaned(i, j, captions)
	return i, j, caption, err
}

// captions are those of image i. It is an error where there are none, or where not all of them can be read.
func (t *Train) captions(i int) ([]string, error) {
	list := t.ds.Captions(i)
	if len(list) > 0 && len(list) == numCaptions(t.ds, i) {
		return list, nil
	}
	if f, ok := t.ds.(interface{ Fault(i int) error }); ok {
		if err := f.Fault(i); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("data: %s: no caption, or only empty ones", t.ds.Name(i))
}

// cleaned is caption j of image i, whose captions are given.
func (t *Train) cleaned(i, j int, captions []string) (string, error) {
	caption := Clean(t.cfg.Clean, captions[j], t.cfg.MaxWords)
	if caption == "" {
		return "", fmt.Errorf("data: %s: caption %d is empty", t.ds.Name(i), j)
	}
	return caption, nil
}

// item is the image of sample c and which of its captions it has, -1 for any.
func (t *Train) item(c uint64) (image, caption int) {
	k := t.order.At(c)
	if t.pairs != nil {
		return int(t.pairs[k].image), int(t.pairs[k].caption)
	}
	return int(k), -1
}

// Account implements account.Accounted.
func (t *Train) Account() *account.Account { return account.Of(t.ds) }
