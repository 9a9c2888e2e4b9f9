package run

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/words"
)

// mostUnknown is the number of words that are named.
const mostUnknown = 5

// sayUnknownWords counts the words of the captions of a split that the vocabulary lacks; nothing is said of a split
// without captions or of a vocabulary that has them all.
func sayUnknownWords(say func(format string, args ...any), split string, s *Split, tok *tokenizer.Tokenizer) {
	if s == nil || s.Eval == nil || tok == nil {
		return
	}
	counts := map[string]int{}
	for j := range s.Eval.NumTexts() {
		for _, w := range strings.Fields(s.Eval.Text(j)) {
			counts[w]++
		}
	}
	list := data.UnknownWords(tok, counts)
	if len(list) == 0 {
		return
	}
	n := 0
	var named []string
	for i, w := range list {
		if n += w.Count; i < mostUnknown {
			named = append(named, words.Inline(fmt.Sprintf("%q", w.Word)))
		}
	}
	say("data, %s: the vocabulary lacks %s of the captions, which occur %s times: %s", split,
		words.Count(len(list), "word"), words.Thousands(n), strings.Join(named, ", "))
}
