// Package sentences reads files of sentences without images: a sentence on each line, or tables with a column of
// sentences and, for training with positives, columns of positives and hard negatives.
//
//	set, err := sentences.Load([]string{"wiki1m.txt"}, sentences.Config{Sentence: "sentence"})
//	stream, err := data.NewTrain(set, data.TrainConfig{Text: texts, ...})
//
// A set is a data.Dataset whose images have one caption each and no pixels: a sentence is the caption.
package sentences

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/transform"
)

// Set is sentences in the order of their files, with their positives and hard negatives where the configuration names
// columns of them. It keeps the text of all, and 8 bytes for each.
type Set struct {
	text   []byte
	ends   []uint64 // of the texts in text
	per    int      // texts of a row: 1, 2 with a positive, 3 with a hard negative
	counts Counts
}

var (
	_ data.Cached      = (*Set)(nil)
	_ data.Columned    = (*Set)(nil)
	_ data.Accompanied = (*Set)(nil)
)

// add appends a row of texts.
func (s *Set) add(texts []string) {
	for _, t := range texts {
		s.text = append(s.text, t...)
		s.ends = append(s.ends, uint64(len(s.text)))
	}
}

// at is text k of row i.
func (s *Set) at(i, k int) string {
	n, start := i*s.per+k, uint64(0)
	if n > 0 {
		start = s.ends[n-1]
	}
	return string(s.text[start:s.ends[n]])
}

// Counts say what was read and what was left out.
func (s *Set) Counts() Counts { return s.counts }

// Account implements account.Accounted.
func (s *Set) Account() *account.Account { return s.counts.Account() }

// EmptyCaptions is the number of rows that were left out because a text is empty.
func (s *Set) EmptyCaptions() int { return s.counts.Empty }

// BadRows is the number of rows that were other than their file says or no UTF-8, and why the first of them was.
func (s *Set) BadRows() (n int, first error) { return s.counts.Bad + s.counts.Garbled, s.counts.First }

// Len is the number of sentences.
func (s *Set) Len() int { return len(s.ends) / s.per }

// NumCaptions is 1: a sentence is its own caption.
func (s *Set) NumCaptions(int) int { return 1 }

// Captions is sentence i.
func (s *Set) Captions(i int) []string { return []string{s.at(i, 0)} }

// Others implements data.Accompanied: the number of texts beside a sentence.
func (s *Set) Others() int { return s.per - 1 }

// Other implements data.Accompanied: the positive (0) or the hard negative (1) of sentence i.
func (s *Set) Other(i, k int) string { return s.at(i, k+1) }

// ImageID is the number of a sentence.
func (s *Set) ImageID(i int) int64 { return int64(i) }

// Name says which sentence i is.
func (s *Set) Name(i int) string { return fmt.Sprintf("sentence %d", i) }

// Nameless says that Name is a mere number.
func (s *Set) Nameless() {}

// Image fails: a sentence has none.
func (s *Set) Image(int) (*transform.Image, error) { return nil, errNoImages }

var errNoImages = errors.New(`data: data.kind "sentences" has no images: use a kind of images with captions`)

// ImageColumns implements data.Columned: there are none.
func (s *Set) ImageColumns() []data.Column { return nil }

// FillImage implements data.Columned.
func (s *Set) FillImage(int, batch.Row) error { return nil }

// Pixels implements data.Columned.
func (s *Set) Pixels() bool { return false }

// UseCache implements data.Cached: there is nothing to decode.
func (s *Set) UseCache(*data.Cache) {}

// Cache implements data.Cached.
func (s *Set) Cache() *data.Cache { return nil }
