package tokenizer

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// bpe is byte pair encoding (Sennrich et al. 2016): a word begins as characters, and the two neighbours
// that were merged first in training are merged, over and over.
type bpe struct {
	ids     map[string]int32
	edges   [2][2]edge // of one character, by whether characters are before it and whether none is behind it
	merges  map[[2]int32]merge
	unk     int32   // -1: characters that are not in the vocabulary are left out
	fuseUnk bool    // neighbouring unknown characters are one token
	bytes   []int32 // tokens of single bytes, for characters that are not in the vocabulary; nil: none
	whole   bool    // a word that is a token is that token, without merges
}

// edge is how characters at some places of a word are looked for.
type edge struct {
	before, behind string // what is written around a character
	ids            map[rune]int32
}

// merge says what two neighbours become, and when.
type merge struct{ rank, id int32 }

// bpeFile is the model of a tokenizer.json.
type bpeFile struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unk          *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       [][2]string      `json:"merges"`
}

// parseMerge reads two tokens with a space between them.
func parseMerge(s string) (p [2]string, err error) {
	a, b, ok := strings.Cut(s, " ")
	if !ok || a == "" || b == "" || strings.Contains(b, " ") {
		return p, fmt.Errorf("%q must be two tokens with a space between them", s)
	}
	return [2]string{a, b}, nil
}

func newBPE(f *bpeFile) (*bpe, error) {
	switch {
	case len(f.Vocab) == 0:
		return nil, fmt.Errorf("tokenizer: tokenizer.json has no model.vocab")
	case f.Dropout != nil && *f.Dropout != 0:
		return nil, fmt.Errorf("tokenizer: model.dropout must be null (got %g): a text has one encoding", *f.Dropout)
	}
	m := &bpe{ids: f.Vocab, merges: make(map[[2]int32]merge, len(f.Merges)), unk: -1, fuseUnk: f.FuseUnk, whole: f.IgnoreMerges}
	prefix, suffix := "", ""
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	if f.Suffix != nil {
		suffix = *f.Suffix
	}
	m.edges = [2][2]edge{{newEdge(f.Vocab, "", ""), newEdge(f.Vocab, "", suffix)},
		{newEdge(f.Vocab, prefix, ""), newEdge(f.Vocab, prefix, suffix)}}
	if f.Unk != nil && *f.Unk != "" {
		id, ok := f.Vocab[*f.Unk]
		if !ok {
			return nil, fmt.Errorf("tokenizer: model.unk_token %q is not in model.vocab", *f.Unk)
		}
		m.unk = id
	}
	if f.ByteFallback {
		m.bytes = byteTokens(func(s string) (int32, bool) { id, ok := f.Vocab[s]; return id, ok })
	}
	for i, p := range f.Merges {
		a, okA := f.Vocab[p[0]]
		b, okB := f.Vocab[p[1]]
		inside, okPrefix := strings.CutPrefix(p[1], prefix)
		id, ok := f.Vocab[p[0]+inside]
		if !okA || !okB || !ok || !okPrefix {
			return nil, fmt.Errorf("tokenizer: merge %d of %q and %q: both and what they make must be in model.vocab",
				i, p[0], p[1])
		}
		m.merges[[2]int32{a, b}] = merge{int32(i), id}
	}
	return m, nil
}

// newEdge looks for characters with something before and behind them.
func newEdge(vocab map[string]int32, before, behind string) edge {
	e := edge{before, behind, map[rune]int32{}}
	for s, id := range vocab {
		s, ok := strings.CutPrefix(s, before)
		s, ends := strings.CutSuffix(s, behind)
		if r, n := utf8.DecodeRuneInString(s); ok && ends && n > 0 && n == len(s) {
			e.ids[r] = id
		}
	}
	return e
}

// byteTokens are the ids of <0x00> to <0xFF>, -1 for those that there are none of.
func byteTokens(id func(token string) (int32, bool)) []int32 {
	ids := make([]int32, 256)
	for b := range ids {
		ids[b] = -1
		if x, ok := id(fmt.Sprintf("<0x%02X>", b)); ok {
			ids[b] = x
		}
	}
	return ids
}

// byteOf returns the byte that a token stands for, such as <0x0A>, where the vocabulary has such tokens.
func (t *Tokenizer) byteOf(id int32) (byte, bool) {
	var bytes []int32
	switch m := t.model.(type) {
	case *bpe:
		bytes = m.bytes
	case *unigram:
		bytes = m.bytes
	}
	i := slices.Index(bytes, id)
	return byte(max(i, 0)), i >= 0 && id >= 0
}

// appendBytes appends the byte tokens of s; it fails where one is missing or there are none.
func appendBytes(ids, tokens []int32, s string) ([]int32, bool) {
	if tokens == nil {
		return ids, false
	}
	for i := range len(s) {
		if tokens[s[i]] < 0 {
			return ids, false
		}
	}
	for i := range len(s) {
		ids = append(ids, tokens[s[i]])
	}
	return ids, true
}

// appendWord implements model.
func (m *bpe) appendWord(ids []int32, word string) []int32 {
	if m.whole {
		if id, ok := m.ids[word]; ok {
			return append(ids, id)
		}
	}
	start := len(ids)
	ids = m.appendChars(ids, word)
	return m.mergeAll(ids, start)
}

// appendChars appends the ids of the characters of a word.
func (m *bpe) appendChars(ids []int32, word string) []int32 {
	unknown := false
	for i, r := range word {
		n := utf8.RuneLen(r)
		e := &m.edges[min(i, 1)][0]
		if i+n == len(word) {
			e = &m.edges[min(i, 1)][1]
		}
		id, ok := e.ids[r]
		if !ok {
			if ids, ok = appendBytes(ids, m.bytes, e.before+word[i:i+n]+e.behind); ok {
				unknown = false
				continue
			}
			if m.unk >= 0 && !(unknown && m.fuseUnk) {
				ids = append(ids, m.unk)
			}
			unknown = true
			continue
		}
		ids, unknown = append(ids, id), false
	}
	return ids
}

// shortWord is the number of characters up to which a word is searched over and over for its next merge.
const shortWord = 24

// mergeAll merges ids[start:] in place.
func (m *bpe) mergeAll(ids []int32, start int) []int32 {
	s := ids[start:]
	if len(s) > shortWord {
		return ids[:start+m.mergeLong(s)]
	}
	var next [shortWord]merge // of s[i] and s[i+1]
	look := func(i int) {
		if i < 0 || i+1 >= len(s) {
			return
		}
		x, ok := m.merges[[2]int32{s[i], s[i+1]}]
		if !ok {
			x.rank = -1
		}
		next[i] = x
	}
	for i := range s {
		look(i)
	}
	for {
		best := -1
		for i := 0; i+1 < len(s); i++ {
			if next[i].rank >= 0 && (best < 0 || next[i].rank < next[best].rank) {
				best = i
			}
		}
		if best < 0 {
			return ids[:start+len(s)]
		}
		s[best] = next[best].id
		copy(s[best+1:], s[best+2:])
		copy(next[best+1:], next[best+2:])
		s = s[:len(s)-1]
		look(best - 1)
		look(best)
	}
}

// mergeLong merges a long word with a queue of pairs and returns its length.
func (m *bpe) mergeLong(s []int32) int {
	w := longWord{ids: s, before: make([]int32, len(s)), after: make([]int32, len(s))}
	for i := range s {
		w.before[i], w.after[i] = int32(i-1), int32(i+1)
	}
	w.after[len(s)-1] = -1
	push := func(at int32) {
		if at < 0 || w.after[at] < 0 {
			return
		}
		if x, ok := m.merges[[2]int32{s[at], s[w.after[at]]}]; ok {
			w.queue.items = append(w.queue.items, pair{at, s[at], s[w.after[at]], x})
		}
	}
	for i := range s {
		push(int32(i))
	}
	heap.Init(&w.queue)
	for w.queue.Len() > 0 {
		p := heap.Pop(&w.queue).(pair)
		right := w.after[p.at]
		if s[p.at] != p.left || right < 0 || s[right] != p.right {
			continue // one of them was merged
		}
		s[p.at] = p.id
		s[right] = -1
		if w.after[p.at] = w.after[right]; w.after[p.at] >= 0 {
			w.before[w.after[p.at]] = p.at
		}
		for _, at := range []int32{w.before[p.at], p.at} {
			n := w.queue.Len()
			if push(at); w.queue.Len() > n {
				heap.Fix(&w.queue, n)
			}
		}
	}
	n := 0
	for _, id := range s {
		if id >= 0 {
			s[n] = id
			n++
		}
	}
	return n
}

// longWord is a word as a list of tokens; those that were merged into the one before are -1.
type longWord struct {
	ids           []int32
	before, after []int32
	queue         pairQueue
}

// pair is two neighbours, with the place of the first.
type pair struct {
	at, left, right int32
	merge
}

// pairQueue has the pair on top that is merged first: of the least rank, then the leftmost.
type pairQueue struct{ items []pair }

func (q *pairQueue) Len() int      { return len(q.items) }
func (q *pairQueue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *pairQueue) Push(x any)    { q.items = append(q.items, x.(pair)) }

func (q *pairQueue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at)) < 0
}

func (q *pairQueue) Pop() any {
	n := len(q.items) - 1
	x := q.items[n]
	q.items = q.items[:n]
	return x
}
