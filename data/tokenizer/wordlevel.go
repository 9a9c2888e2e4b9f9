package tokenizer

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Special tokens of vocabularies of whole words, as the programs of VSE++, SCAN and their successors write them.
const (
	wordPad   = "<pad>"
	wordStart = "<start>"
	wordEndOf = "<end>"
	wordUnk   = "<unk>"
)

// wordSpecials in the order of a learned vocabulary.
var wordSpecials = []string{wordPad, wordStart, wordEndOf, wordUnk}

// nltkType is the pre_tokenizer of a tokenizer.json whose words are those of NLTK. It is of this module alone.
const nltkType = "NLTKWords"

// wordLevelFile is the model of a tokenizer.json whose tokens are whole words.
type wordLevelFile struct {
	Type  string           `json:"type"`
	Unk   string           `json:"unk_token"`
	Vocab map[string]int32 `json:"vocab"`
}

// wordLevel gives every word its own id, and all that are not known one.
type wordLevel struct {
	ids map[string]int32
	unk int32
}

func newWordLevel(f *wordLevelFile) (*wordLevel, error) {
	unk, ok := f.Vocab[f.Unk]
	if !ok {
		return nil, fmt.Errorf("tokenizer: model.unk_token %q is not in model.vocab", f.Unk)
	}
	return &wordLevel{f.Vocab, unk}, nil
}

func (m *wordLevel) appendWord(ids []int32, word string) []int32 {
	id, ok := m.ids[word]
	if !ok {
		id = m.unk
	}
	return append(ids, id)
}

// nltkWords is a splitter: the words of a text as nltk.word_tokenize finds them.
func nltkWords(out []string, s string, _ bool) []string {
	for _, sentence := range appendSentences(nil, s) {
		out = treebankWords(out, sentence)
	}
	return out
}

// wordFile is the tokenizer.json of a vocabulary of words, as the vocab.json of VSE++ and its successors has one
// ({"word2idx": {...}, "idx2word": {...}, "idx": n}), in lower case, between <start> and <end>.
func wordFile(vocab map[string]int32) (*jsonFile, error) {
	for _, s := range wordSpecials {
		if _, ok := vocab[s]; !ok {
			return nil, fmt.Errorf("tokenizer: a vocabulary of words needs %s, %s, %s and %s: it lacks %s", wordPad,
				wordStart, wordEndOf, wordUnk, s)
		}
	}
	f := &jsonFile{Version: "1.0", Padding: newPadding(vocab[wordPad], wordPad)}
	if err := f.set(kind{"Lowercase"}, kind{nltkType}, wordLevelFile{WordLevel, wordUnk, vocab}); err != nil {
		return nil, err
	}
	return f, f.setTemplate(wordStart, wordEndOf, func(s string) (int32, bool) { id, ok := vocab[s]; return id, ok })
}

// LearnWords makes a vocabulary of whole words from texts, at most size tokens: <pad>, <start>, <end> and <unk>, and
// the words, as nltk.word_tokenize finds them in lower case, that occur at least least times, the most frequent
// first and those of one count in the order of their letters.
func LearnWords(texts iter.Seq[string], size, least int) (*Tokenizer, error) {
	counts := map[string]int{}
	for text := range texts {
		for _, w := range nltkWords(nil, lower(text), true) {
			counts[w]++
		}
	}
	maps.DeleteFunc(counts, func(w string, n int) bool { return n < least || slices.Contains(wordSpecials, w) })
	if len(counts) == 0 {
		return nil, fmt.Errorf("tokenizer: no word occurs %d times, of which a vocabulary could be learned", least)
	}
	if size <= len(wordSpecials) {
		return nil, fmt.Errorf("tokenizer: vocabulary size must be at least %d (got %d)", len(wordSpecials)+1, size)
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	vocab := map[string]int32{}
	for _, w := range slices.Concat(wordSpecials, words[:min(len(words), size-len(wordSpecials))]) {
		vocab[w] = int32(len(vocab))
	}
	f, err := wordFile(vocab)
	if err != nil {
		return nil, err
	}
	return f.build(roles{})
}
