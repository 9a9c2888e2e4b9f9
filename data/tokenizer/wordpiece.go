package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// continuation begins the pieces inside a word.
const continuation = "##"

// defaultMaxWord is the length in characters from which a word is unknown as a
// whole.
const defaultMaxWord = 100

// wordPiece cuts a word greedily into the longest pieces of a vocabulary (Schuster and Nakajima 2012, as
// in BERT).
type wordPiece struct {
	ids     map[string]int32 // pieces that start a word
	inside  map[string]int32 // pieces inside a word, without what they begin with
	longest int              // longest piece in bytes
	maxWord int              // in characters
	unk     int32
}

// wordPieceFile is the model of a tokenizer.json.
type wordPieceFile struct {
	Type    string           `json:"type"`
	Unk     string           `json:"unk_token"`
	Prefix  *string          `json:"continuing_subword_prefix"`
	MaxWord int              `json:"max_input_chars_per_word"`
	Vocab   map[string]int32 `json:"vocab"`
}

// longestWord is the largest number of characters of a word that pieces are looked for in.
const longestWord = 1000

func newWordPiece(f *wordPieceFile) (*wordPiece, error) {
	if len(f.Vocab) == 0 {
		return nil, fmt.Errorf("tokenizer: tokenizer.json has no model.vocab")
	}
	m := &wordPiece{ids: f.Vocab, inside: map[string]int32{}, maxWord: f.MaxWord}
	if m.maxWord <= 0 {
		m.maxWord = defaultMaxWord
	}
	if m.maxWord > longestWord {
		return nil, fmt.Errorf("tokenizer: model.max_input_chars_per_word must be at most %d (got %d): the time for a word grows with its square", longestWord, m.maxWord)
	}
	prefix, unk := continuation, f.Unk
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	if unk == "" {
		unk = UnkToken
	}
	id, ok := f.Vocab[unk]
	if !ok {
		return nil, fmt.Errorf("tokenizer: model.unk_token %q is not in model.vocab", unk)
	}
	m.unk = id
	for s, id := range f.Vocab {
		if p, ok := strings.CutPrefix(s, prefix); ok && p != "" {
			m.inside[p] = id
		}
		m.longest = max(m.longest, len(s))
	}
	return m, nil
}

// appendWord appends the pieces of one word: the longest token that the word
// starts with, then the longest piece that the rest starts with, and so on.
// A word that cannot be cut so is unknown as a whole.
func (m *wordPiece) appendWord(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > m.maxWord {
		return append(ids, m.unk)
	}
	start := len(ids)
	pieces := m.ids
	for at := 0; at < len(word); {
		end := min(len(word), at+m.longest)
		for end < len(word) && !utf8.RuneStart(word[end]) {
			end--
		}
		id, ok := int32(0), false
		for end > at {
			if id, ok = pieces[word[at:end]]; ok {
				break
			}
			_, n := utf8.DecodeLastRuneInString(word[at:end])
			end -= n
		}
		if !ok {
			return append(ids[:start], m.unk)
		}
		ids = append(ids, id)
		at, pieces = end, m.inside
	}
	return ids
}
