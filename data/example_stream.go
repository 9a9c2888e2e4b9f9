package data

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// ExampleConfig says how examples become rows: their text and pictures as TrainConfig says, and their answers.
type ExampleConfig struct {
	TrainConfig
	Answers   Answers
	ByPicture bool // batch.IDs say which picture a sample is about, for losses that compare pictures with texts
}

// pictureColumns are the columns of the pictures of an example, each with the random stream of its augmentation.
var pictureColumns = [...]struct{ column, stream string }{
	{batch.Images, rng.Augment},
	{batch.SecondImages, rng.Augment + "/other"},
}

// ExampleStream is the endless training stream of examples: a new permutation every epoch, or one after the other where
// they have no end. Its columns are those of the pictures, of the text, batch.IDs with the number of the sample in the
// list, batch.Labels, and those of answers.
type ExampleStream struct {
	examples Examples
	cfg      ExampleConfig
	order    ordering // nil: endless
}

var (
	_ Stream         = (*ExampleStream)(nil)
	_ Described      = (*ExampleStream)(nil)
	_ LabelledStream = (*ExampleStream)(nil)
)

// NewExampleStream returns the stream of examples. It fails where there are none.
func NewExampleStream(x Examples, cfg ExampleConfig) (*ExampleStream, error) {
	if x.Len() == 0 {
		return nil, fmt.Errorf("data: the training data has no sample: check the files of the train split")
	}
	if cfg.Transform.Size <= 0 {
		return nil, fmt.Errorf("data: image size must be > 0 (got %d)", cfg.Transform.Size)
	}
	if err := cfg.Text.check(); err != nil {
		return nil, err
	}
	if err := cfg.Answers.check(cfg.Text); err != nil {
		return nil, err
	}
	s := &ExampleStream{examples: x, cfg: cfg}
	if e, ok := x.(Endless); !ok || !e.Endless() {
		s.order = NewOrder(cfg.Seed, x.Len())
	}
	return s, nil
}

// Examples returns the samples of the stream.
func (s *ExampleStream) Examples() Examples { return s.examples }

// Cache is where decoded pictures are kept, nil for nowhere.
func (s *ExampleStream) Cache() *Cache {
	if c, ok := s.examples.(interface{ Cache() *Cache }); ok {
		return c.Cache()
	}
	return nil
}

// at is the number of sample c in the list.
func (s *ExampleStream) at(c uint64) int {
	if s.order == nil {
		return int(c)
	}
	return s.order.At(c)
}

// EpochSamples is the number of samples that count as one epoch.
func (s *ExampleStream) EpochSamples() int { return s.examples.Len() }

// Columns implements Stream.
func (s *ExampleStream) Columns() []Column {
	return exampleColumns(s.examples, s.cfg.Transform.Size, s.cfg.Text, s.cfg.Answers)
}

// exampleColumns are the columns of examples with pictures of size x size pixels.
func exampleColumns(x Examples, size int, text *Texts, answers Answers) (list []Column) {
	for _, p := range pictureColumns[:x.Pictures()] {
		list = append(list, Column{Name: p.column, Shape: []int{3, size, size}})
	}
	list = append(list, text.Columns()...)
	list = append(list, Column{Name: batch.IDs, Type: batch.Int32}, Column{Name: batch.Labels, Type: batch.Int32})
	return append(list, answers.columns()...)
}

// Sample implements Stream: pictures are augmented by the generators (seed, augment, c) and (seed, augment/other, c).
func (s *ExampleStream) Sample(c uint64, row batch.Row) error { return s.SampleTimed(c, row, nil) }

// SampleTimed is Sample and adds to w, if not nil, what each stage took.
func (s *ExampleStream) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	w.Start()
	i := s.at(c)
	e := s.examples.Example(i)
	if err := fillExample(e, i, row, s.cfg.Text, s.cfg.Answers, s.cfg.Clean, s.cfg.MaxWords); err != nil {
		return fmt.Errorf("%s: %w", s.examples.PictureName(i, 0), err)
	}
	if s.cfg.ByPicture {
		row.Set(batch.IDs, HashID(ExampleDataset{s.examples}.ImageID(i)))
	}
	w.Lap(images.StageText)
	for k, p := range pictureColumns[:s.examples.Pictures()] {
		dst := row.Floats(p.column)
		if dst == nil {
			continue
		}
		img, err := s.examples.Picture(i, k)
		if err != nil {
			return err
		}
		w.Lap(images.StageRead)
		w.Saw(img)
		if err := s.cfg.Transform.ApplyTimed(img, rng.New(s.cfg.Seed, p.stream, c), dst, w.Transform()); err != nil {
			return fmt.Errorf("%s: %w", s.examples.PictureName(i, k), err)
		}
		w.Start()
	}
	w.Made()
	return nil
}

// fillExample writes the columns of example i that row has and that no picture is read for.
func fillExample(e Example, i int, row batch.Row, text *Texts, answers Answers, clean string, maxWords int) error {
	said := Clean(clean, e.Text, maxWords)
	if said == "" {
		return fmt.Errorf("data: sample %d: nothing is left of the text %.60q by data.clean: use another rule, or "+
			"remove the sample", i, e.Text)
	}
	text.Fill(said, row)
	row.Set(batch.IDs, int32(i&0x7fffffff))
	row.Set(batch.Labels, e.Label)
	return answers.fill(e.Answers, text, row)
}

// Describe returns the text of sample c and its number in the list.
func (s *ExampleStream) Describe(c uint64) (string, int64, error) {
	i := s.at(c)
	return s.examples.Example(i).Text, int64(i), nil
}

// Labels returns the classes, ok = false where samples have none.
func (s *ExampleStream) Labels() (names []string, ok bool) {
	names = s.examples.Labels()
	return names, names != nil
}

// SampleLabel is the class of sample c.
func (s *ExampleStream) SampleLabel(c uint64) int32 { return s.examples.Example(s.at(c)).Label }

// ExampleGallery is examples as rows for an evaluation, in their order, with pictures that are resized and normalised.
type ExampleGallery struct {
	Of       Examples
	Picture  transform.Eval // how pictures become columns
	Text     *Texts         // the columns of texts; nil: none
	Answers  Answers        // the columns of answers
	Clean    string         // rule by which texts are cleaned, see Clean
	MaxWords int            // words kept of a text; 0: all
}

var _ Gallery = ExampleGallery{}

// Len implements Gallery.
func (g ExampleGallery) Len() int { return g.Of.Len() }

// Columns implements Gallery.
func (g ExampleGallery) Columns() []Column {
	return exampleColumns(g.Of, g.Picture.Size, g.Text, g.Answers)
}

// Fill implements Gallery.
func (g ExampleGallery) Fill(i int, row batch.Row) error {
	if err := fillExample(g.Of.Example(i), i, row, g.Text, g.Answers, g.Clean, g.MaxWords); err != nil {
		return err
	}
	for k, p := range pictureColumns[:g.Of.Pictures()] {
		dst := row.Floats(p.column)
		if dst == nil {
			continue
		}
		img, err := g.Of.Picture(i, k)
		if err != nil {
			return err
		}
		if err := g.Picture.Apply(img, nil, dst); err != nil {
			return fmt.Errorf("%s: %w", g.Of.PictureName(i, k), err)
		}
	}
	return nil
}

// Account implements account.Accounted.
func (s *ExampleStream) Account() *account.Account { return account.Of(s.examples) }
