package objectives

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Masker chooses the tokens that masked language modelling predicts, by the rule of
// BERT (Devlin et al. 2019, section 3.1): each token of a text but the first and Specials with probability Prob; of
// those, 80% become [MASK], 10% a random id of the whole vocabulary (special tokens possible), 10% stay.
type Masker struct {
	Prob     float64
	Vocab    int     // size of the vocabulary
	MaskID   int32   // id of [MASK]
	Specials []int32 // ids that are not predicted, such as the end of a text
	Capacity int     // most tokens predicted per batch, as the step was built for
}

// IgnoreLabel is the label of an entry that predicts nothing.
const IgnoreLabel = -100

// Masked is a masked batch. Its slices are reused when it is passed to Apply
// again.
type Masked struct {
	Tokens    []int32 // (B, L), the input with masks
	Positions []int32 // (Capacity), b*L + l of each predicted token, rising; then 0
	Labels    []int32 // (Capacity), the original id of each; then IgnoreLabel
	Count     int     // predicted tokens, at most Capacity
}

// Check says what is wrong with k.
func (k Masker) Check() error {
	switch {
	case !(k.Prob >= 0 && k.Prob <= 1):
		return fmt.Errorf("objectives: mask probability must be in [0, 1] (got %g)", k.Prob)
	case k.Vocab <= 0 || int(k.MaskID) >= k.Vocab || k.MaskID < 0:
		return fmt.Errorf("objectives: mask id must be in the vocabulary of %d tokens (got %d)", k.Vocab, k.MaskID)
	case k.Capacity <= 0:
		return fmt.Errorf("objectives: mask capacity must be > 0 (got %d): use the rows of the loss that the model was built with", k.Capacity)
	}
	return nil
}

// Apply masks tokens, row-major (B, L) with [CLS] or the like in column 0, of which the
// first lengths[b] of row b are text, into m. Where more tokens are chosen than
// Capacity, the surplus, which is the last ones, is neither masked nor
// predicted. Where none is chosen one is drawn, so that the mean over the
// predicted tokens exists; Count is 0 only for a batch without
// any token to predict, and where Prob is 0.
func (k Masker) Apply(r *rand.Rand, tokens, lengths []int32, m *Masked) error {
	if err := k.Check(); err != nil {
		return err
	}
	if len(lengths) == 0 || len(tokens)%len(lengths) != 0 {
		return fmt.Errorf("objectives: %d tokens are no batch of %d texts", len(tokens), len(lengths))
	}
	l := len(tokens) / len(lengths)
	m.Tokens = append(m.Tokens[:0], tokens...)
	m.Positions, m.Labels, m.Count = m.Positions[:0], m.Labels[:0], 0
	candidates := 0
	for b, n := range lengths {
		if n < 0 || int(n) > l {
			return fmt.Errorf("objectives: text %d has %d tokens of %d", b, n, l)
		}
		for i := 1; i < int(n); i++ {
			if slices.Contains(k.Specials, tokens[b*l+i]) {
				continue
			}
			candidates++
			if r.Float64() < k.Prob && m.Count < k.Capacity {
				k.hide(r, m, b*l+i)
			}
		}
	}
	if m.Count == 0 && candidates > 0 && k.Prob > 0 {
		pick := r.IntN(candidates)
		k.hide(r, m, k.candidate(tokens, lengths, pick))
	}
	for range k.Capacity - m.Count {
		m.Positions = append(m.Positions, 0)
		m.Labels = append(m.Labels, IgnoreLabel)
	}
	return nil
}

// share sets m to the share that a rank has of what was masked of all, whose own texts are tokens, with room for so
// many predicted tokens, and returns the number of the first of these among all. Further ones are neither masked nor
// predicted.
func (m *Masked) share(all *Masked, tokens []int32, rank, room int) (first int) {
	from := rank * len(tokens)
	m.Tokens = append(m.Tokens[:0], all.Tokens[from:][:len(tokens)]...)
	m.Positions, m.Labels, m.Count = m.Positions[:0], m.Labels[:0], 0
	for i, p := range all.Positions[:all.Count] {
		switch at := int(p) - from; {
		case at < 0:
			first = i + 1
		case at < len(tokens) && m.Count < room:
			m.Positions, m.Labels, m.Count = append(m.Positions, int32(at)), append(m.Labels, all.Labels[i]), m.Count+1
		case at < len(tokens):
			m.Tokens[at] = tokens[at]
		}
	}
	for range room - m.Count {
		m.Positions, m.Labels = append(m.Positions, 0), append(m.Labels, IgnoreLabel)
	}
	return first
}

// candidate is the place of the nth token that may be predicted.
func (k Masker) candidate(tokens, lengths []int32, nth int) int {
	l := len(tokens) / len(lengths)
	for b, n := range lengths {
		for i := 1; i < int(n); i++ {
			if slices.Contains(k.Specials, tokens[b*l+i]) {
				continue
			}
			if nth == 0 {
				return b*l + i
			}
			nth--
		}
	}
	return 0
}

// hide makes the token at p a predicted one.
func (k Masker) hide(r *rand.Rand, m *Masked, p int) {
	m.Positions = append(m.Positions, int32(p))
	m.Labels = append(m.Labels, m.Tokens[p])
	m.Count++
	switch u := r.Float64(); {
	case u < 0.8:
		m.Tokens[p] = k.MaskID
	case u < 0.9:
		m.Tokens[p] = int32(r.IntN(k.Vocab))
	}
}
