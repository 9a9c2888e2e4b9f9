package sentencepairs

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
)

// StreamConfig says how pairs become samples.
type StreamConfig struct {
	Seed     uint64      // of the order
	Text     *data.Texts // the columns of both sentences; nil: none
	Clean    string      // rule by which sentences are cleaned, see data.Clean
	MaxWords int         // words kept of a sentence; 0: all
	Joint    bool        // both sentences are one text, with the column batch.Segments, and none is the second text
}

// Stream is an endless stream of the pairs of a set in a new order every epoch. Its columns are batch.Tokens and
// batch.Lengths of the first sentence, batch.SecondTokens and batch.SecondLengths of the second one, batch.IDs with
// the number of the pair, batch.Labels and batch.Scores; with StreamConfig.Joint both are one text.
type Stream struct {
	set   *Set
	cfg   StreamConfig
	order *data.Order
}

var (
	_ data.Stream         = (*Stream)(nil)
	_ data.Described      = (*Stream)(nil)
	_ data.LabelledStream = (*Stream)(nil)
)

// NewStream returns the stream of a set. It fails where the set is empty.
func NewStream(s *Set, cfg StreamConfig) (*Stream, error) {
	if len(s.Pairs) == 0 {
		return nil, errors.New("data: the training data has no pair of sentences: check the files of the train split")
	}
	if cfg.Joint {
		if err := cfg.Text.CheckPairs(); err != nil {
			return nil, err
		}
	}
	return &Stream{set: s, cfg: cfg, order: data.NewOrder(cfg.Seed, len(s.Pairs))}, nil
}

// Set returns the pairs of the stream.
func (s *Stream) Set() *Set { return s.set }

// Columns implements data.Stream.
func (s *Stream) Columns() []data.Column { return s.cfg.Columns() }

// Columns are those of a pair.
func (cfg StreamConfig) Columns() []data.Column {
	texts := append(cfg.Text.Columns(), cfg.Text.TextColumns(batch.PositiveText)...)
	if cfg.Joint {
		texts = cfg.Text.JointColumns()
	}
	return append(texts, data.Column{Name: batch.IDs, Type: batch.Int32},
		data.Column{Name: batch.Labels, Type: batch.Int32}, data.Column{Name: batch.Scores})
}

// EpochSamples is the number of pairs.
func (s *Stream) EpochSamples() int { return len(s.set.Pairs) }

// Sample implements data.Stream.
func (s *Stream) Sample(c uint64, row batch.Row) error {
	i := s.order.At(c)
	return s.set.Fill(i, s.cfg, row)
}

// Fill writes the columns that row has of pair i.
func (s *Set) Fill(i int, cfg StreamConfig, row batch.Row) error {
	p := s.Pairs[i]
	a, b := data.Clean(cfg.Clean, p.A, cfg.MaxWords), data.Clean(cfg.Clean, p.B, cfg.MaxWords)
	if a == "" || b == "" {
		return fmt.Errorf("data: pair %d: nothing is left of %.60q and %.60q by data.clean: use another rule, or "+
			"remove the pair", i, p.A, p.B)
	}
	if cfg.Joint {
		cfg.Text.FillJoint(a, b, row)
	} else {
		cfg.Text.Fill(a, row)
		cfg.Text.FillText(b, row, batch.PositiveText)
	}
	row.Set(batch.IDs, int32(i))
	row.Set(batch.Labels, p.Label)
	if x := row.Floats(batch.Scores); x != nil {
		x[0] = float32(p.Score)
	}
	return nil
}

// Describe returns both sentences of sample c and the number of its pair.
func (s *Stream) Describe(c uint64) (string, int64, error) {
	i := s.order.At(c)
	return s.set.Pairs[i].A + " | " + s.set.Pairs[i].B, int64(i), nil
}

// Labels returns the classes of the task, ok = false of scores.
func (s *Stream) Labels() (names []string, ok bool) {
	return s.set.Task.Classes, !s.set.Task.Scored()
}

// SampleLabel is the class of sample c.
func (s *Stream) SampleLabel(c uint64) int32 { return s.set.Pairs[s.order.At(c)].Label }
