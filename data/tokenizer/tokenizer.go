package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Special tokens.
const (
	PadToken  = "[PAD]"
	UnkToken  = "[UNK]"
	ClsToken  = "[CLS]"
	SepToken  = "[SEP]"
	MaskToken = "[MASK]"
)

// specials in the order of a learned vocabulary.
var specials = []string{PadToken, UnkToken, ClsToken, SepToken, MaskToken}

// continuation begins the pieces inside a word.
const continuation = "##"

// defaultMaxWord is the length in characters from which a word is unknown as a
// whole.
const defaultMaxWord = 100

// Options are the steps of the normaliser. Default is that of bert-base-uncased.
type Options struct {
	Lowercase    bool
	StripAccents bool
	SplitChinese bool // a space around every Chinese character
	CleanText    bool // control characters removed, every white space a space
	MaxWord      int  // longer words (in characters) become [UNK]
}

// Default returns the options of bert-base-uncased: every step on.
func Default() Options {
	return Options{Lowercase: true, StripAccents: true, SplitChinese: true, CleanText: true, MaxWord: defaultMaxWord}
}

// Tokenizer is a WordPiece tokenizer. It is never modified after it was made,
// so its methods may be called from several goroutines.
type Tokenizer struct {
	tokens []string         // by id
	ids    map[string]int32 // whole tokens and pieces that start a word
	inside map[string]int32 // pieces inside a word, without ##
	opt    Options

	longest int // longest piece in bytes
	pad     int32
	unk     int32
	cls     int32
	sep     int32 // -1: not in the vocabulary
	mask    int32
}

// New returns the tokenizer of a vocabulary, tokens by id. The vocabulary must
// hold [PAD] (as id 0), [UNK], [CLS] and [MASK], and no token twice.
func New(tokens []string, opt Options) (*Tokenizer, error) {
	if opt.MaxWord <= 0 {
		opt.MaxWord = defaultMaxWord
	}
	t := &Tokenizer{tokens: slices.Clone(tokens), ids: make(map[string]int32, len(tokens)), inside: map[string]int32{}, opt: opt}
	for i, s := range t.tokens {
		if s == "" {
			return nil, fmt.Errorf("tokenizer: token %d is empty: remove the blank line", i)
		}
		if first, ok := t.ids[s]; ok {
			return nil, fmt.Errorf("tokenizer: token %q has two ids (%d and %d): remove one", s, first, i)
		}
		t.ids[s] = int32(i)
		if p, ok := strings.CutPrefix(s, continuation); ok && p != "" {
			t.inside[p] = int32(i)
		}
		t.longest = max(t.longest, len(s))
	}
	for _, x := range []struct {
		name string
		id   *int32
	}{{PadToken, &t.pad}, {UnkToken, &t.unk}, {ClsToken, &t.cls}, {MaskToken, &t.mask}} {
		id, ok := t.ids[x.name]
		if !ok {
			return nil, fmt.Errorf("tokenizer: the vocabulary of %d tokens lacks %s: is it a BERT vocabulary?", len(tokens), x.name)
		}
		*x.id = id
	}
	if t.pad != 0 {
		return nil, fmt.Errorf("tokenizer: %s must have id 0 (got %d): batches are padded with 0", PadToken, t.pad)
	}
	t.sep = -1
	if id, ok := t.ids[SepToken]; ok {
		t.sep = id
	}
	return t, nil
}

// Size is the number of tokens of the vocabulary.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// PadID is the id of [PAD], always 0.
func (t *Tokenizer) PadID() int32 { return t.pad }

// UnkID is the id of [UNK].
func (t *Tokenizer) UnkID() int32 { return t.unk }

// ClsID is the id of [CLS].
func (t *Tokenizer) ClsID() int32 { return t.cls }

// SepID is the id of [SEP], or -1 where the vocabulary has none.
func (t *Tokenizer) SepID() int32 { return t.sep }

// MaskID is the id of [MASK].
func (t *Tokenizer) MaskID() int32 { return t.mask }

// Options returns the options of the normaliser.
func (t *Tokenizer) Options() Options { return t.opt }

// Tokens returns the vocabulary by id. Do not modify it.
func (t *Tokenizer) Tokens() []string { return t.tokens }

// Token returns the token of an id; [UNK] for an id out of range.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return UnkToken
	}
	return t.tokens[id]
}

// ID returns the id of a token.
func (t *Tokenizer) ID(token string) (id int32, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// Equal reports whether both tokenizers encode every text alike.
func (t *Tokenizer) Equal(o *Tokenizer) bool {
	return t.opt == o.opt && slices.Equal(t.tokens, o.tokens)
}

// Encode returns [CLS] and the pieces of text, at most maxTokens ids in all
// (maxTokens <= 0: no limit). There is no [SEP] at the end.
func (t *Tokenizer) Encode(text string, maxTokens int) []int32 {
	ids := make([]int32, 1, max(8, min(maxTokens, 64)))
	ids[0] = t.cls
	for word := range words(text, t.opt) {
		if maxTokens > 0 && len(ids) >= maxTokens {
			break
		}
		ids = t.appendWord(ids, word)
	}
	if maxTokens > 0 && len(ids) > maxTokens {
		ids = ids[:maxTokens]
	}
	return ids
}

// appendWord appends the pieces of one word: the longest token that the word
// starts with, then the longest piece that the rest starts with, and so on.
// A word that cannot be cut so is [UNK] as a whole.
func (t *Tokenizer) appendWord(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > t.opt.MaxWord {
		return append(ids, t.unk)
	}
	start := len(ids)
	pieces := t.ids
	for at := 0; at < len(word); {
		end := min(len(word), at+t.longest)
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
			return append(ids[:start], t.unk)
		}
		ids = append(ids, id)
		at, pieces = end, t.inside
	}
	return ids
}

// Decode joins ids to a text: pieces are joined to their words, [PAD], [CLS] and
// [SEP] are left out.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id == t.pad || id == t.cls || id == t.sep {
			continue
		}
		s := t.Token(id)
		if p, ok := strings.CutPrefix(s, continuation); ok && p != "" {
			b.WriteString(p)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	return b.String()
}
