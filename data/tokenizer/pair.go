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

// EncodePair returns the ids of two texts in one, at most maxTokens, and how many of them are the first text with what
// stands around it: [CLS] a [SEP] b [SEP] (Devlin et al. 2019, figure 2), or of RoBERTa <s> a </s></s> b </s>. Of two
// texts that are too long the longer one is cut first, as in Hugging Face's tokenizers (longest_first).
func (t *Tokenizer) EncodePair(a, b string, maxTokens int) (ids []int32, first int) {
	between := []int32{t.sep}
	if t.Token(t.cls) == "<s>" {
		between = append(between, t.sep)
	}
	x, y := t.appendText(nil, a, 0), t.appendText(nil, b, 0)
	n, m := longestFirst(len(x), len(y), max(0, maxTokens-2-len(between)))
	x, y = x[:n], y[:m]
	ids = append(append([]int32{t.cls}, x...), between...)
	first = min(len(ids), maxTokens)
	ids = append(append(ids, y...), t.sep)
	return ids[:min(len(ids), maxTokens)], first
}

// longestFirst are what is left of n and m tokens where there is room for so many: the longer text is cut to the length
// of the shorter one, then both to halves.
func longestFirst(n, m, room int) (int, int) {
	if n+m <= room {
		return n, m
	}
	if n > m {
		m, n = longestFirst(m, n, room)
		return n, m
	}
	if half := room / 2; n > half {
		return half, room - half
	}
	return n, room - n
}
