package objectives

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// MCSE is the grounding of sentences of Zhang et al. (2022, "MCSE", equations 3 and 4): both passes of a text under
// dropout should find the image of the text among those of the batch. It stands beside objective.simcse, and its weight
// is the paper's lambda.
//
// Both passes z, z' of text i under dropout should find its image among those of the batch,
//
//	L = -1/2B sum_i sum_{h in z_i, z'_i} log exp(s(g(h), f(v_i))/tau) / sum_j exp(s(g(h), f(v_j))/tau)
//
// for the cosine s and heads g and f of the two sides, which are those of evaluation. There is one direction: texts
// search images. Of rows without an image neither the texts search nor is there an image v_j to find.
type MCSE struct {
	// of the loss in the total, 0.05 for captions alone and 0.01 beside other sentences in the paper; 0: off
	section.Weighted
	// by which cosines are divided; constant
	Temperature float64 `toml:"temperature" max:"1000000"`
}

var _ Preparer = (*MCSE)(nil)

// Defaults implements section.Defaulter.
func (l *MCSE) Defaults() { *l = MCSE{Temperature: 0.05} }

// Needs implements section.Needer.
func (*MCSE) Needs() []section.Fact { return []section.Fact{section.Captions} }

// Gives implements section.Giver.
func (*MCSE) Gives() []section.Fact {
	return []section.Fact{section.States}
}

// Check implements section.Checked.
func (l *MCSE) Check(k *section.Checker) {
	checkTexts(k, l)
}

// Prepare implements Preparer.
func (l *MCSE) Prepare(s *Step) {
	s.readTwice()
	s.Reads.Online.Image.Features = true
}

// Build implements Loss.
func (l *MCSE) Build(s *Step) []Part {
	texts, images := directions(s, s.sentences("mcse", nil)), directions(s, s.Online.Image.Features)
	logits := cosineLogits(texts, s.Gather(images), l.Temperature) // (2B, N)
	own := s.Own()
	if s.Has(section.Mixed) {
		own = s.paired()
		logits = arith.Add(logits, s.withoutImage(2*s.Rows))
	}
	labels := layout.ConcatInts(own, own)
	part := s.Part("mcse", l.Weight, s.mean(contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits,
		Labels: labels}), labels))
	part.Chance = math.Log(float64(s.All()))
	return []Part{part, {Name: "mcse_accuracy", Node: s.mean(contrast.Accuracy(logits, labels), labels), Measure: true}}
}

// paired are the places of rows with an image, -1 of the others, (B) int32.
func (s *Step) paired() *gorgonia.Node {
	s.Read(batch.Column{Name: batch.Paired, Type: batch.Int32})
	return s.Ints("paired rows", func(f *feed.Step, dst []int32) error {
		for i, p := range f.Batch.Ints(batch.Paired) {
			if dst[i] = int32(s.First() + i); p == 0 {
				dst[i] = -1
			}
		}
		return nil
	}, s.Rows)
}

// noImage is added to the logits of what stands instead of an image that is not there: its share of a softmax is
// 0.
const noImage = -1e30

// withoutImage is added to logits (n, N): noImage in the columns of rows without an image, of all processes, else 0.
func (s *Step) withoutImage(n int) *gorgonia.Node {
	var paired []int32
	return s.Floats("images that are not there", func(f *feed.Step, dst []float32) (err error) {
		own := f.Batch.Ints(batch.Paired)
		paired = append(paired[:0], own...)
		if s.splits() {
			if paired, err = s.Ranks.Group.GatherInts(paired[:0], own); err != nil {
				return fmt.Errorf("objectives: rows with an image of other processes: %w", err)
			}
		}
		for i := range dst {
			if dst[i] = 0; paired[i%len(paired)] == 0 {
				dst[i] = noImage
			}
		}
		return nil
	}, n, s.All())
}
