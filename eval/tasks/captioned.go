package tasks

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
)

// Captioned compares the captions that a model writes for images with those of people, by BLEU and CIDEr-D as the
// official evaluation of COCO's captions computes them.
type Captioned struct {
	// Write returns a caption of each of the n rows of b. It ends early with the error of ctx.
	Write   func(ctx context.Context, b *batch.Batch) ([]string, error)
	Columns []batch.Column // that Write reads
	Set     *data.Eval     // its captions are the references, as they are written
	Nearest Nearest
	Encoding
}

// Nearest is the baseline of captions that are copied: an image gets the caption of the training image whose class
// tokens have the largest cosine with its own.
type Nearest struct {
	Model   ClassEncoder
	Train   data.Stream // images that are not augmented, with captions
	Engine  *compute.Engine
	Samples int // of Train that are compared, the first ones; 0: there is no baseline
}

// CaptionScore is how good captions are.
type CaptionScore struct {
	Bleu  [4]float64 // BLEU-1 to BLEU-4, in percent
	Cider float64    // CIDEr-D, in percent
}

// CaptionedScores are the outcome.
type CaptionedScores struct {
	Images, References int
	Written            CaptionScore
	Copied             *CaptionScore // of Nearest, nil without
	Said               []string      // caption of each image
	Each               []float64     // CIDEr-D of each, in percent
	From               int           // training images of Nearest
}

// Run writes a caption of every image. It ends early with the error of ctx.
func (t Captioned) Run(ctx context.Context) (CaptionedScores, error) {
	s := CaptionedScores{Images: t.Set.NumImages(), References: t.Set.NumTexts()}
	err := t.batches(ctx, t.Columns, t.Set.Images(), "writing captions", func(b *batch.Batch, k int) error {
		said, err := t.Write(ctx, b)
		if err == nil {
			s.Said = append(s.Said, said[:k]...)
		}
		return err
	})
	if err != nil {
		return s, err
	}
	written := make([][]string, s.Images)
	for i := range written {
		written[i] = t.Set.Written(i)
	}
	references := eval.ReferenceWords(written)
	if s.Written, s.Each, err = scoreCaptions(s.Said, references); err != nil || t.Nearest.Samples == 0 {
		return s, err
	}
	copied, err := t.copied(ctx, &s)
	if err != nil {
		return s, err
	}
	score, _, err := scoreCaptions(copied, references)
	s.Copied = &score
	return s, err
}

// scoreCaptions compares captions with references, and returns the CIDEr-D of each too.
func scoreCaptions(said []string, references [][][]string) (s CaptionScore, each []float64, err error) {
	all := make([]eval.Captioned, len(said))
	for i, words := range eval.CaptionWords(said) {
		all[i] = eval.Captioned{Words: words, References: references[i]}
	}
	if s.Bleu, err = eval.Bleu(all); err != nil {
		return s, nil, err
	}
	if s.Cider, each, err = eval.Cider(all); err != nil {
		return s, nil, err
	}
	for i := range s.Bleu {
		s.Bleu[i] *= 100
	}
	s.Cider *= 100
	for i := range each {
		each[i] *= 100
	}
	return s, each, nil
}

// copied returns the caption of the nearest training image for each image.
func (t Captioned) copied(ctx context.Context, s *CaptionedScores) ([]string, error) {
	n := t.Nearest
	train := samples{n.Train, min(n.Samples, n.Train.EpochSamples())}
	s.From = train.n
	captions, number := make([]string, train.n), make([]int32, train.n)
	for i := range captions {
		var err error
		if captions[i], _, err = data.Describe(n.Train, uint64(i)); err != nil {
			return nil, err
		}
		number[i] = int32(i)
	}
	known, err := t.ClassTokens(ctx, n.Model, train, "encoding training images")
	if err != nil {
		return nil, err
	}
	own, err := t.ClassTokens(ctx, n.Model, t.Set.Images(), "encoding images")
	if err != nil {
		return nil, err
	}
	nearest, err := eval.NearestNeighbours(ctx, n.Engine, known, number, train.n, own, s.Images, 1)
	if err != nil {
		return nil, err
	}
	out := make([]string, s.Images)
	for i, k := range nearest {
		out[i] = captions[k]
	}
	return out, nil
}
