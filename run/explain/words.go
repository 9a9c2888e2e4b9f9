package explain

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/explain"
)

// textWord is a word of a text and the places of its tokens.
type textWord struct {
	text    string
	places  []int
	special bool // stands around the text
	unknown bool // the vocabulary has no token for it
}

// wordsOf joins the tokens of a text to words: a token goes on with the word before it where the text
// to read has no space between them.
func wordsOf(tok *tokenizer.Tokenizer, ids []int32) (list []textWord) {
	specials, so := tok.Specials(), ""
	for i, id := range ids {
		if slices.Contains(specials, id) {
			list = append(list, textWord{text: tok.Token(id), places: []int{i}, special: true})
			continue
		}
		now := tok.Decode(ids[:i+1])
		added, ok := strings.CutPrefix(now, so)
		if !ok { // a character of several tokens is whole now
			added = now[len(commonPrefix(now, so)):]
		}
		last := len(list) - 1
		begins := so == "" || strings.HasPrefix(added, " ") || last < 0 || list[last].special
		so = now
		added = strings.TrimSpace(strings.ReplaceAll(added, "\ufffd", ""))
		if begins {
			list = append(list, textWord{text: added, places: []int{i}, unknown: id == tok.UnkID()})
			continue
		}
		list[last].text += added
		list[last].places = append(list[last].places, i)
	}
	return list
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.ToValidUTF8(a[:n], "")
}

// spread gives words the sum of the values of their places.
func spread(list []textWord, values []float64) []explain.Word {
	out := make([]explain.Word, len(list))
	for i, w := range list {
		out[i] = explain.Word{Text: w.text, Special: w.special}
		for _, p := range w.places {
			out[i].Value += values[p]
		}
	}
	return out
}

// unknown counts the words that the vocabulary lacks, and all.
func unknown(list []textWord) (n, all int) {
	for _, w := range list {
		if w.unknown {
			n++
		}
		if !w.special {
			all++
		}
	}
	return n, all
}

// uncut is cleaner without the limit of words.
func uncut(cfg config.Config) func(string) string {
	return func(s string) string { return data.Clean(cfg.Data.Clean, s, 0) }
}
