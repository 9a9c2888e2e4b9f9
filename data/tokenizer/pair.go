package tokenizer

import "errors"

// errNoPairs is why a vocabulary has no pairs of texts.
var errNoPairs = errors.New("tokenizer: the vocabulary has no [CLS] and [SEP] to stand around two texts: use one of BERT or RoBERTa")

// HasPairs says whether EncodePair can be called.
func (t *Tokenizer) HasPairs() error {
	if t.cls < 0 || t.sep < 0 {
		return errNoPairs
	}
	return nil
}

// EncodePair returns the ids of two texts in one, at most maxTokens, and how many of them are the first text with what stands
// around it: [CLS] a [SEP] b [SEP] (Devlin et al. 2019, figure 2), or of RoBERTa <s> a </s></s> b </s>. Of two texts that are
// too long the longer one is cut first, token by token.
func (t *Tokenizer) EncodePair(a, b string, maxTokens int) (ids []int32, first int) {
	between := []int32{t.sep}
	if t.Token(t.cls) == "<s>" {
		between = append(between, t.sep)
	}
	x, y := t.appendText(nil, a, maxTokens), t.appendText(nil, b, maxTokens)
	for room := max(0, maxTokens-2-len(between)); len(x)+len(y) > room; {
		if len(x) > len(y) {
			x = x[:len(x)-1]
		} else {
			y = y[:len(y)-1]
		}
	}
	ids = append(append([]int32{t.cls}, x...), between...)
	first = min(len(ids), maxTokens)
	ids = append(append(ids, y...), t.sep)
	return ids[:min(len(ids), maxTokens)], first
}
