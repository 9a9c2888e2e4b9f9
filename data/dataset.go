package data

import (
	"fmt"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
)

// Dataset is a finite list of images, each with its captions. Methods may be
// called from several goroutines.
type Dataset interface {
	// Len is the number of images.
	Len() int
	// Captions of image i as written in the source; none is blank. An image may
	// have none: it is then a bad sample of training and left out of evaluation.
	Captions(i int) []string
	// ImageID of image i: equal ids mean that one is a right answer for the other.
	ImageID(i int) int64
	// Name says which image i is, in error messages.
	Name(i int) string
	// Image decodes image i. The caller must not change it.
	Image(i int) (*transform.Image, error)
}

// Options of the sources that read files.
type Options struct {
	MaxPixels int    // pixel limit of an image; 0: images.DefaultMaxPixels
	Clean     string // rule by which captions are cleaned, see Clean
	// Progress is told how far a list, a table, shards or folders are read when they are opened, from one goroutine at
	// a time; nil: nobody is.
	Progress func(done, of int)
	// Keep says which images of captions lists and tables are read, by their names as they are written; nil: all.
	Keep func(name string) bool
	// Account counts what is met; nil: a new one does, which the data set has.
	Account *account.Account
}

// Counting is o with an Account.
func (o Options) Counting() Options {
	if o.Account == nil {
		o.Account = account.New()
	}
	return o
}

// tally has what became of the inputs of a data set.
type tally struct{ account *account.Account }

// Account implements account.Accounted.
func (t tally) Account() *account.Account { return t.account }

// Tell reports every thousandth of many entries, and the last.
func (o Options) Tell(done, of int) {
	if o.Progress != nil && (done%1000 == 0 || done == of) {
		o.Progress(done, of)
	}
}

// File is an image file with its captions.
type File struct {
	Path     string // of the image
	ID       int64
	Captions []string
	Label    int32 // class; read only where the data set has classes
}

// Cached is a Dataset that can keep its decoded images. UseCache must be called before it is in use
// (nil: nowhere). With CacheConfig.Size its images are the shrunk ones, which is for training:
// evaluation should see them as they are.
type Cached interface {
	Dataset
	account.Accounted
	UseCache(c *Cache)
	Cache() *Cache
}

// keeper is where a Cached data set has its cache.
type keeper struct{ cache *Cache }

// UseCache makes the data set keep its decoded images in c, see Cached.
func (k *keeper) UseCache(c *Cache) { k.cache = c }

// Cache is where decoded images are kept, nil for nowhere.
func (k *keeper) Cache() *Cache { return k.cache }

// Files is a Dataset of image files. Blank captions are dropped on the way in.
type Files struct {
	items     []File
	maxPixels int
	keeper
	tally
	emptyCaptions int
	classes       []string // names; nil: none
}

var _ Cached = (*Files)(nil)

// NewFiles returns the data set of items, in their order.
func NewFiles(items []File, opt Options) *Files {
	opt = opt.Counting()
	f := &Files{items: make([]File, len(items)), maxPixels: opt.MaxPixels, tally: tally{opt.Account}}
	for i, it := range items {
		kept := make([]string, 0, len(it.Captions))
		for _, c := range it.Captions {
			if blank(opt.Clean, c) {
				f.emptyCaptions++
				opt.Account.LeftOut(CaptionUnit, 1, emptyCaption, it.Path)
				continue
			}
			kept = append(kept, c)
		}
		countImage(opt.Account, len(kept), it.Path)
		it.Captions = kept
		f.items[i] = it
	}
	return f
}

// What accounts of images with captions count.
const (
	ImageUnit   = "image"
	CaptionUnit = "caption"
)

const (
	emptyCaption = "nothing is left of it after cleaning"
	noCaption    = "without a caption, so training skips it and evaluation leaves it out"
)

// countImage counts an image with so many captions.
func countImage(a *account.Account, captions int, name string) {
	a.Used(ImageUnit, 1)
	a.Used(CaptionUnit, captions)
	if captions == 0 {
		a.Changed(ImageUnit, 1, noCaption, name)
	}
}

// Len is the number of images.
func (f *Files) Len() int { return len(f.items) }

// Captions of image i.
func (f *Files) Captions(i int) []string { return f.items[i].Captions }

// ImageID of image i.
func (f *Files) ImageID(i int) int64 { return f.items[i].ID }

// Name is the path of image i.
func (f *Files) Name(i int) string { return f.items[i].Path }

// Image reads and decodes image i, or takes it from the cache.
func (f *Files) Image(i int) (*transform.Image, error) {
	return f.cache.Image(f.items[i].Path, f.maxPixels)
}

func (f *Files) place(i int) (path, part string) { return f.items[i].Path, "" }

func (f *Files) imageTimed(i int, w *images.Stopwatch) (*transform.Image, error) {
	return f.cache.image(f.items[i].Path, f.maxPixels, w)
}

// EmptyCaptions is the number of captions that were dropped because nothing of
// them is left after cleaning.
func (f *Files) EmptyCaptions() int { return f.emptyCaptions }

// Memory is a Dataset of images in memory, for tests and small experiments.
type Memory struct {
	Images []*transform.Image
	Texts  [][]string // captions of each image
	IDs    []int64    // nil: the index

	Classes []string // names of the classes; nil: none
	ClassOf []int32  // class of each image; read only with Classes
}

var _ Dataset = (*Memory)(nil)

// Len is the number of images.
func (m *Memory) Len() int { return len(m.Images) }

// Captions of image i.
func (m *Memory) Captions(i int) []string { return m.Texts[i] }

// ImageID of image i.
func (m *Memory) ImageID(i int) int64 {
	if m.IDs == nil {
		return int64(i)
	}
	return m.IDs[i]
}

// Name of image i is its number.
func (m *Memory) Name(i int) string { return fmt.Sprintf("image %d", i) }

// Image i; an error when it is nil.
func (m *Memory) Image(i int) (*transform.Image, error) {
	if m.Images[i] == nil {
		return nil, fmt.Errorf("data: image %d is missing", i)
	}
	return m.Images[i], nil
}
