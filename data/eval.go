package data

import (
	"fmt"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/transform"
)

// EvalConfig says how a data set becomes an Eval.
type EvalConfig struct {
	ImageSize int             // side of an image, S
	Input     transform.Input // how images are resized and normalised
	MaxWords  int             // words kept of a caption; 0: all
	Clean     string          // rule by which captions are cleaned, see Clean
	MaxImages int             // the first images only; 0: all
}

// Eval is a split of a Dataset for evaluation: a gallery of images and one of texts, each
// text belonging to one image. Order and content never change. Methods may be called from
// several goroutines.
type Eval struct {
	ds      Dataset
	cfg     EvalConfig
	size    int
	input   transform.Input
	images  []int // indices into ds
	texts   []string
	owner   []int
	byImage [][]int
	skipped int
	bad     *account.Account // images that Without left out; nil: none
}

var _ Galleries = (*Eval)(nil)

// NewEval returns the evaluation set of ds: its images in order, each with all
// its captions. Images without a caption are left out and counted (Skipped).
func NewEval(ds Dataset, cfg EvalConfig) (*Eval, error) {
	if cfg.ImageSize <= 0 {
		return nil, fmt.Errorf("data: image size must be > 0 (got %d)", cfg.ImageSize)
	}
	e := &Eval{ds: ds, cfg: cfg, size: cfg.ImageSize, input: cfg.Input}
	for i := range ds.Len() {
		if cfg.MaxImages > 0 && len(e.images) == cfg.MaxImages {
			break
		}
		var mine []int
		for _, c := range ds.Captions(i) {
			if c = Clean(cfg.Clean, c, cfg.MaxWords); c != "" {
				mine = append(mine, len(e.texts))
				e.texts = append(e.texts, c)
				e.owner = append(e.owner, len(e.images))
			}
		}
		if mine == nil {
			e.skipped++
			continue
		}
		e.images = append(e.images, i)
		e.byImage = append(e.byImage, mine)
	}
	if len(e.images) == 0 {
		return nil, fmt.Errorf("data: none of the %d images of the evaluation split has a caption of at least one "+
			"word (punctuation does not count): give the entries of its files captions", ds.Len())
	}
	return e, nil
}

// Rephrased is the split with a caption for every phrasing where its data can say the same in several ways, as scenes
// can; else it is the split itself.
func (e *Eval) Rephrased() (*Eval, error) {
	ds, ok := e.ds.(interface{ Rephrased() *SceneSet })
	if !ok {
		return e, nil
	}
	return NewEval(ds.Rephrased(), e.cfg)
}

// HasSiblings says whether some image has several captions, or some id several images.
func (e *Eval) HasSiblings() bool {
	seen := map[int64]bool{}
	for i := range e.images {
		id := e.ImageID(i)
		if seen[id] || len(e.byImage[i]) > 1 {
			return true
		}
		seen[id] = true
	}
	return false
}

// Close closes the files of the data set, if it holds some open. Nothing may be read any more.
func (e *Eval) Close() error { return closeFiles(e.ds) }

// Skipped is the number of images left out because they have no caption.
func (e *Eval) Skipped() int { return e.skipped }

// NumImages is the size of the image gallery.
func (e *Eval) NumImages() int { return len(e.images) }

// NumTexts is the size of the text gallery.
func (e *Eval) NumTexts() int { return len(e.texts) }

// Text returns text j, cleaned.
func (e *Eval) Text(j int) string { return e.texts[j] }

// Written returns the captions of image i as its data has them, without those of which cleaning leaves nothing.
func (e *Eval) Written(i int) (list []string) {
	for _, c := range e.ds.Captions(e.images[i]) {
		if Clean(e.cfg.Clean, c, e.cfg.MaxWords) != "" {
			list = append(list, c)
		}
	}
	return list
}

// TextImage returns the index of the image of text j.
func (e *Eval) TextImage(j int) int { return e.owner[j] }

// ImageTexts returns the indices of the texts of image i. Do not modify them.
func (e *Eval) ImageTexts(i int) []int { return e.byImage[i] }

// ImageID returns the id of image i.
func (e *Eval) ImageID(i int) int64 { return e.ds.ImageID(e.images[i]) }

// ImageName says which image i is.
func (e *Eval) ImageName(i int) string { return e.ds.Name(e.images[i]) }

// Image decodes image i.
func (e *Eval) Image(i int) (*transform.Image, error) { return e.ds.Image(e.images[i]) }

// LoadImage writes image i to dst: resized to (S, S), normalised, planar.
func (e *Eval) LoadImage(i int, dst []float32) error {
	img, err := e.Image(i)
	if err != nil {
		return err
	}
	return transform.Eval{Input: e.input, Size: e.size}.Apply(img, nil, dst)
}
