package data

import "fmt"

// Tokenizer is what the loader needs of a tokenizer (package data/tokenizer).
type Tokenizer interface {
	// Encode returns [CLS] and the pieces of text, at most maxTokens ids (0: all).
	Encode(text string, maxTokens int) []int32
}

// TokenBatch encodes texts into tokens, row-major (B, L) with B = len(texts),
// padded with id 0 ([PAD]), and their numbers of tokens into lengths (B).
func TokenBatch(tok Tokenizer, texts []string, l int, tokens, lengths []int32) error {
	if l <= 0 || len(tokens) != len(texts)*l || len(lengths) != len(texts) {
		return fmt.Errorf("data: %d texts of %d tokens need buffers of %d and %d (got %d and %d)", len(texts), l, len(texts)*l, len(texts), len(tokens), len(lengths))
	}
	clear(tokens)
	for b, s := range texts {
		lengths[b] = int32(copy(tokens[b*l:(b+1)*l], tok.Encode(s, l)))
	}
	return nil
}
