package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// added is an entry of added_tokens: a text that is one token wherever it stands, before the model sees it.
type added struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only between characters that are not letters, digits or _
	Lstrip     bool   `json:"lstrip"`      // takes the white space before it
	Rstrip     bool   `json:"rstrip"`      // takes the white space behind it
	Normalized bool   `json:"normalized"`  // looked for in the normalised text
	Special    bool   `json:"special"`
}

// addedTokens finds added tokens in a text: the leftmost, of those the longest.
type addedTokens struct {
	tokens []added
	tree   prefixTree // to the places in tokens
	starts [256]bool  // first bytes
}

// newAddedTokens returns what finds the tokens that are looked for in a text as it is, or normalised.
func newAddedTokens(all []added, normalized bool, n normalizer) *addedTokens {
	a := &addedTokens{}
	places := map[string]int32{}
	for _, t := range all {
		if t.Normalized != normalized || t.Content == "" {
			continue
		}
		if normalized && n != nil {
			t.Content = n.text(t.Content)
		}
		if t.Content == "" {
			continue
		}
		if _, ok := places[t.Content]; !ok {
			places[t.Content] = int32(len(a.tokens))
			a.tokens = append(a.tokens, t)
			a.starts[t.Content[0]] = true
		}
	}
	if len(a.tokens) == 0 {
		return nil
	}
	a.tree = newPrefixTree(places)
	return a
}

// at returns the longest token that s starts with.
func (a *addedTokens) at(s string) (t added, ok bool) {
	node := int32(0)
	for i := range len(s) {
		if node = a.tree.child(node, s[i]); node < 0 {
			break
		}
		if place := a.tree.token[node]; place >= 0 {
			t, ok = a.tokens[place], true
		}
	}
	return t, ok
}

// split calls text and token in turn for what lies between tokens and for tokens. text is told where its part
// begins, and ends the search by false.
func (a *addedTokens) split(s string, text func(part string, from int) bool, token func(id int32)) bool {
	if a == nil {
		return s == "" || text(s, 0)
	}
	end := 0
	for i := 0; i < len(s); {
		if !a.starts[s[i]] {
			i++
			continue
		}
		t, ok := a.at(s[i:])
		if !ok {
			i++
			continue
		}
		from, to := i, i+len(t.Content)
		i = to
		if t.SingleWord && (wordEnds(s[:from]) || wordStarts(s[to:])) {
			continue
		}
		if t.Lstrip {
			from = max(end, len(strings.TrimRightFunc(s[:from], unicode.IsSpace)))
		}
		if t.Rstrip {
			to = len(s) - len(strings.TrimLeftFunc(s[to:], unicode.IsSpace))
		}
		if end < from && !text(s[end:from], end) {
			return false
		}
		if from < to {
			token(t.ID)
		}
		end = to // tokens are looked for in the white space behind t too, as in Hugging Face's tokenizers
	}
	return end == len(s) || text(s[end:], end)
}

func wordEnds(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && wordRune(r)
}

func wordStarts(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && wordRune(r)
}

// wordRune is a character of words in regular expressions.
func wordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
		unicode.Join_Control)
}
