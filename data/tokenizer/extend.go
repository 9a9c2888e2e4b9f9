package tokenizer

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// mostPieces is into how many tokens a word may be cut and still be read as it is: circle and ##s.
const mostPieces = 2

// Extended returns the tokenizer with at most so many further tokens behind its own: the commonest words of texts that
// it does not know or cuts into more than two tokens, such as the letters of "colour" where no caption had a colour;
// words that are as common are in order. The tokens that it has keep their ids, so that a table of embeddings grows at
// its end. Only a WordPiece tokenizer with TemplateALBEF can be extended.
func (t *Tokenizer) Extended(texts iter.Seq[string], most int) (*Tokenizer, error) {
	if !t.albef {
		return nil, fmt.Errorf("tokenizer: a %s tokenizer with the template %q takes no new words: only one of WordPiece with %q does", t.kind, t.Template(), TemplateALBEF)
	}
	counts := map[string]int{}
	for text := range texts {
		for w := range wordsOf(text, t.opt) {
			counts[w]++
		}
	}
	for w := range counts {
		if pieces := t.model.appendWord(nil, w); len(pieces) <= mostPieces && !slices.Contains(pieces, t.unk) {
			delete(counts, w)
		}
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return New(append(slices.Clone(t.tokens), list[:min(len(list), most)]...), t.opt)
}
