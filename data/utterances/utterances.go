// Package utterances reads utterances with a sentiment, as CMU-MOSEI and CMU-MOSI have them: for each one a sequence of
// features of every modality (text, audio, vision) and a label from -3 to 3, of MOSEI with the strengths of six emotions.
//
//	set, err := utterances.Load("train.npz", []string{"text", "audio"})
//
// Shape letters: N utterances, L steps of a sequence, D features of a step.
package utterances

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/table"
)

// Modalities of the layout, which are the names of the arrays of a file.
var Modalities = []string{"text", "audio", "vision"}

// labels is the name of the array of labels.
const labels = "labels"

// Emotions are those of CMU-MOSEI, in the order in which its labels have them behind the sentiment.
var Emotions = []string{"happiness", "sadness", "anger", "surprise", "disgust", "fear"}

// Largest is the largest size of a label.
const Largest = 3

// Set is the utterances of a file, each sequence pooled to the mean of its steps.
type Set struct {
	Labels    []float64            // N, from -3 to 3
	Emotions  [][]float64          // of each of Emotions N strengths from 0 to 3; nil: the file has the sentiment alone
	Pooled    map[string][]float32 // (N, D) by modality
	Width     map[string]int       // D by modality
	Empty     map[string]int       // utterances without a step, by modality: their mean is 0
	NotFinite int                  // numbers that are none, read as 0: the audio features of MOSEI have some
}

// Load reads a .npz or .safetensors file with the array labels (N, 1), or (N, 7) with the emotions, either also as
// (N, 1, 1) and (N, 1, 7), and an array (N, L, D) of each of some modalities. Steps of zeros before or behind a
// sequence are padding, those within it are not. Modalities need not have one L: they are pooled each by itself.
// They must have one N. A modality may also be (N, D), which is pooled already. An error names the file and the
// array.
func Load(path string, modalities []string) (*Set, error) {
	s := &Set{Pooled: map[string][]float32{}, Width: map[string]int{}, Empty: map[string]int{}}
	wrong := func(name string, err error) error {
		return table.Whole(path, fmt.Errorf("array %q: %w", name, err))
	}
	read := func(name string, take func(m *features.Matrix, row []float32) error) error {
		m, err := features.OpenArray(path, name, 3)
		if err != nil {
			var err2 error
			if m, err2 = features.OpenArray(path, name, 2); err2 != nil {
				return fmt.Errorf("data: %w", err) // which names the file
			}
		}
		row := make([]float32, m.Width())
		for i := range m.Rows() {
			if err = m.ReadRows(i, row); err != nil {
				break
			}
			if err = take(m, row); err != nil {
				err = wrong(name, fmt.Errorf("row %d %w", i, err))
				break
			}
		}
		return errors.Join(err, m.Close())
	}
	err := read(labels, func(m *features.Matrix, row []float32) error {
		if len(row) != 1 && len(row) != 1+len(Emotions) {
			return fmt.Errorf("has %d numbers: want the sentiment, or it and %d emotions", len(row), len(Emotions))
		}
		v := float64(row[0])
		if !(math.Abs(v) <= Largest) {
			return fmt.Errorf("has %v: want one number from -%d to %d", row[:1], Largest, Largest)
		}
		if len(row) > 1 && s.Emotions == nil {
			s.Emotions = make([][]float64, len(Emotions))
		}
		for k, strength := range row[1:] {
			if !(strength >= 0 && strength <= Largest) {
				return fmt.Errorf("has %v for %s: want a strength from 0 to %d", strength, Emotions[k], Largest)
			}
			s.Emotions[k] = append(s.Emotions[k], float64(strength))
		}
		s.Labels = append(s.Labels, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range modalities {
		if !slices.Contains(Modalities, name) {
			return nil, fmt.Errorf("data: there is no modality %q: there are %q", name, Modalities)
		}
		n := 0
		err := read(name, func(m *features.Matrix, row []float32) error {
			d := m.RowShape()[len(m.RowShape())-1]
			n, s.Width[name] = n+1, d
			mean, steps := s.mean(row, d)
			if steps == 0 {
				s.Empty[name]++
			}
			s.Pooled[name] = append(s.Pooled[name], mean...)
			return nil
		})
		if err == nil && n != len(s.Labels) {
			err = wrong(name, fmt.Errorf("has %d utterances and %q %d: save as many of each", n, labels, len(s.Labels)))
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mean pools the steps of a sequence, each of d numbers, from the first to the last that is not all 0.
func (s *Set) mean(row []float32, d int) (mean []float32, steps int) {
	sum := make([]float64, d)
	n := 0 // steps since the first that is not all 0
	for step := range slices.Chunk(row, d) {
		some := false
		for j, v := range step {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				s.NotFinite++
				step[j] = 0
			}
			some = some || step[j] != 0
		}
		if !some && steps == 0 {
			continue
		}
		if n++; !some {
			continue
		}
		steps = n
		for j, v := range step {
			sum[j] += float64(v)
		}
	}
	mean = make([]float32, d)
	for j, v := range sum {
		mean[j] = float32(v / float64(max(1, steps)))
	}
	return mean, steps
}
