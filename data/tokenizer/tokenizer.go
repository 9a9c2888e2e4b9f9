package tokenizer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Special tokens of BERT.
const (
	PadToken  = "[PAD]"
	UnkToken  = "[UNK]"
	ClsToken  = "[CLS]"
	SepToken  = "[SEP]"
	MaskToken = "[MASK]"
)

// specials in the order of a learned vocabulary.
var specials = []string{PadToken, UnkToken, ClsToken, SepToken, MaskToken}

// Kinds of tokenizers, as a tokenizer.json names its model.
const (
	WordPiece = "WordPiece"
	BPE       = "BPE"
	Unigram   = "Unigram"
	WordLevel = "WordLevel"
)

// Options are the steps of BERT's normaliser. Default is that of bert-base-uncased.
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

// model cuts a word into tokens.
type model interface {
	// appendWord appends the ids of the tokens of word.
	appendWord(ids []int32, word string) []int32
}

// Tokenizer turns texts into ids. It is never modified after it was made,
// so its methods may be called from several goroutines.
type Tokenizer struct {
	kind   string
	tokens []string         // by id; empty where an id has none
	ids    map[string]int32 // of all tokens
	model  model
	opt    Options // of TemplateALBEF

	// Steps before the model. TemplateALBEF has those of opt instead.
	albef     bool
	raw       *addedTokens // found in the text as it is; nil: none
	normalize normalizer   // nil: none
	normal    *addedTokens // found in the normalised text; nil: none
	split     splitter     // nil: none

	// begins says whether what is left of a normalised text begins it, where a step asks; nil: always.
	begins func(plain string) bool

	begin, end []int32                // around a text
	knownOnly  bool                   // the unknown token is left out
	stored     func() ([]byte, error) // the tokenizer.json, nil for TemplateALBEF

	pad, unk, cls, sep, mask int32 // -1: there is none; pad is always there
	padRow                   int32
}

// New returns the WordPiece tokenizer of a vocabulary, tokens by id, with TemplateALBEF. The vocabulary must
// hold [PAD] (as id 0), [UNK], [CLS] and [MASK], and no token twice.
func New(tokens []string, opt Options) (*Tokenizer, error) {
	if opt.MaxWord <= 0 {
		opt.MaxWord = defaultMaxWord
	}
	t := &Tokenizer{kind: WordPiece, albef: true, tokens: slices.Clone(tokens),
		ids: make(map[string]int32, len(tokens)), opt: opt, sep: -1}
	for i, s := range t.tokens {
		if s == "" {
			return nil, fmt.Errorf("tokenizer: token %d is empty: remove the blank line", i)
		}
		if len(s) > longestToken {
			return nil, tooLong(s)
		}
		if first, ok := t.ids[s]; ok {
			return nil, fmt.Errorf("tokenizer: token %q has two ids (%d and %d): remove one", s, first, i)
		}
		t.ids[s] = int32(i)
	}
	for _, x := range []struct {
		name string
		id   *int32
	}{{PadToken, &t.pad}, {UnkToken, &t.unk}, {ClsToken, &t.cls}, {MaskToken, &t.mask}} {
		id, ok := t.ids[x.name]
		if !ok {
			return nil, fmt.Errorf("tokenizer: the vocabulary of %d tokens lacks %s: is it a BERT vocabulary? Others need data.template = %q", len(tokens), x.name, TemplateFile)
		}
		*x.id = id
	}
	if t.pad != 0 {
		return nil, fmt.Errorf("tokenizer: %s must have id 0 with the template %q (got %d)", PadToken, TemplateALBEF,
			t.pad)
	}
	if id, ok := t.ids[SepToken]; ok {
		t.sep = id
	}
	t.begin = []int32{t.cls}
	m, err := newWordPiece(&wordPieceFile{Unk: UnkToken, MaxWord: opt.MaxWord, Vocab: t.ids})
	t.model = m
	return t, err
}

// Kind is WordPiece, BPE, Unigram or WordLevel.
func (t *Tokenizer) Kind() string { return t.kind }

// Template is TemplateALBEF or TemplateFile, which those without tokens around a text are too once they are read.
func (t *Tokenizer) Template() string {
	if t.albef {
		return TemplateALBEF
	}
	return TemplateFile
}

// Ends are how many tokens begin every text and how many end it.
func (t *Tokenizer) Ends() (begin, end int) { return len(t.begin), len(t.end) }

// Around is how many tokens stand around every text.
func (t *Tokenizer) Around() int { return len(t.begin) + len(t.end) }

// KnownOnly says whether the unknown token is left out of texts (TemplateKnown).
func (t *Tokenizer) KnownOnly() bool { return t.knownOnly }

// Size is the number of ids: one more than the largest.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// PadID is the id that texts are padded with.
func (t *Tokenizer) PadID() int32 { return t.pad }

// PadRow is PadID where no text has this token, so that its embedding is never learned, and -1 where
// padding is a token that texts have too: the end of a text in SigLIP and CLIP.
func (t *Tokenizer) PadRow() int32 { return t.padRow }

// UnkID is the id of what is not in the vocabulary, -1 where everything is.
func (t *Tokenizer) UnkID() int32 { return t.unk }

// ClsID is the id of the token that every text begins with ([CLS]), -1 where there is none.
func (t *Tokenizer) ClsID() int32 { return t.cls }

// SepID is the id of the token that ends a text ([SEP]), or -1 where the vocabulary has none.
func (t *Tokenizer) SepID() int32 { return t.sep }

// MaskID is the id of the token of masked language modelling ([MASK] or <mask>), -1 where there is none.
func (t *Tokenizer) MaskID() int32 { return t.mask }

// Specials are the ids of padding, of what stands around texts and of the mask: those that masked language
// modelling does not hide.
func (t *Tokenizer) Specials() []int32 {
	ids := slices.Concat([]int32{t.pad}, t.begin, t.end)
	if t.mask >= 0 {
		ids = append(ids, t.mask)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Options returns the options of BERT's normaliser, of a tokenizer with TemplateALBEF.
func (t *Tokenizer) Options() Options { return t.opt }

// Tokens returns the vocabulary by id, "" for an id without a token. Do not modify it.
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

// Equal reports whether both tokenizers are stored alike, and so encode every text alike.
func (t *Tokenizer) Equal(o *Tokenizer) bool {
	if t.albef && o.albef {
		return t.opt == o.opt && slices.Equal(t.tokens, o.tokens)
	}
	if t.albef || o.albef {
		return false
	}
	a, errA := t.stored()
	b, errB := o.stored()
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// Encode returns the ids of text with what stands around it, at most maxTokens in all
// (maxTokens <= 0: no limit). What is cut is the end of the text, and not what stands behind it.
func (t *Tokenizer) Encode(text string, maxTokens int) []int32 {
	ids := make([]int32, len(t.begin), max(8, min(maxTokens, 64)))
	copy(ids, t.begin)
	limit := maxTokens
	if maxTokens > 0 {
		limit = max(maxTokens-len(t.end), 0)
	}
	ids = t.appendText(ids, text, limit)
	if maxTokens > 0 && len(ids) > limit {
		ids = ids[:limit]
	}
	if t.knownOnly {
		ids = slices.DeleteFunc(ids, func(id int32) bool { return id == t.unk })
	}
	ids = append(ids, t.end...)
	if maxTokens > 0 && len(ids) > maxTokens {
		ids = ids[:maxTokens]
	}
	return ids
}

// appendText appends the ids of text. It may end when ids are limit (0: never) or more.
func (t *Tokenizer) appendText(ids []int32, text string, limit int) []int32 {
	room := func() bool { return limit <= 0 || len(ids) < limit }
	if t.albef {
		for word := range wordsOf(text, t.opt) {
			if !room() {
				break
			}
			ids = t.model.appendWord(ids, word)
		}
		return ids
	}
	var parts []string
	token := func(id int32) { ids = append(ids, id) }
	t.raw.split(strings.ToValidUTF8(text, ""), func(s string, from int) bool {
		begins := from == 0
		if t.normalize != nil {
			begins = begins && (t.begins == nil || t.begins(s))
			s = t.normalize.text(s)
		}
		return t.normal.split(s, func(s string, at int) bool {
			parts = append(parts[:0], s)
			if t.split != nil {
				parts = t.split(parts[:0], s, begins && at == 0)
			}
			for _, word := range parts {
				if !room() {
					return false
				}
				ids = t.model.appendWord(ids, word)
			}
			return room()
		}, token)
	}, token)
	return ids
}

// wordEnd ends the last piece of a word in the vocabularies of CLIP.
const wordEnd = "</w>"

// spaceMark stands for a space in the vocabularies of SentencePiece.
const spaceMark = "\u2581"

// Decode joins ids to a text to read: pieces are joined to their words; padding and what stands around a
// text are left out. It does not bring back the text that was encoded.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id == t.pad || id == t.sep || slices.Contains(t.begin, id) || slices.Contains(t.end, id) {
			continue
		}
		s := t.Token(id)
		if t.kind != WordPiece && t.kind != WordLevel {
			if c, ok := t.byteOf(id); ok {
				b.WriteByte(c)
			} else {
				b.WriteString(s)
			}
			continue
		}
		if p, ok := strings.CutPrefix(s, continuation); ok && p != "" && t.kind == WordPiece {
			b.WriteString(p)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	if t.kind == WordPiece || t.kind == WordLevel {
		return b.String()
	}
	s := strings.ReplaceAll(b.String(), wordEnd, " ")
	if t.byteLevel() {
		s = fromByteLevel(s)
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), spaceMark, " "))
}
