package tokenizer

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// maxAlphabet is the most characters that a learned vocabulary starts from;
// rarer ones become [UNK].
const maxAlphabet = 1000

// minMerge is the least number of times that a pair of pieces must occur next
// to each other to become a piece.
const minMerge = 2

// Learn makes a vocabulary of at most size tokens from texts: the special
// tokens ([PAD] first), the characters by frequency, then pieces made by joining
// the most frequent neighbours over and over (byte pair encoding on characters,
// with ## before pieces inside a word). Ties go to the pair that sorts first, so
// the same texts give the same vocabulary in any order. Options are Default.
//
// It fails when size has no room for the special tokens and ten characters, or
// when the texts have no word.
func Learn(texts iter.Seq[string], size int) (*Tokenizer, error) {
	if least := len(specials) + 10; size < least {
		return nil, fmt.Errorf("tokenizer: vocabulary size must be at least %d (got %d)", least, size)
	}
	opt := Default()
	counts := map[string]int{}
	for text := range texts {
		for w := range wordsOf(text, opt) {
			counts[w]++
		}
	}
	if len(counts) == 0 {
		return nil, fmt.Errorf("tokenizer: no word to learn a vocabulary from")
	}
	l := newLearner(counts, size, opt)
	l.merge(size)
	return New(l.tokens, opt)
}

// learner joins pieces. Pieces are numbers: indices into tokens.
type learner struct {
	tokens []string
	ids    map[string]int32
	words  []learnWord
	pairs  map[[2]int32]*learnPair
	queue  pairHeap
}

// learnWord is a word cut into pieces.
type learnWord struct {
	pieces []int32
	count  int
}

// learnPair is two neighbouring pieces: how often they occur, and in which
// words they may.
type learnPair struct {
	pieces [2]int32
	count  int
	words  map[int32]struct{}
}

func newLearner(counts map[string]int, size int, opt Options) *learner {
	l := &learner{ids: map[string]int32{}, pairs: map[[2]int32]*learnPair{}}
	for _, s := range specials {
		l.add(s)
	}
	chars := map[string]int{}
	for w, n := range counts {
		for i, r := range w {
			chars[piece(i, r)] += n
		}
	}
	alphabet := sortedKeys(chars)
	for _, c := range alphabet[:min(len(alphabet), maxAlphabet, size-len(specials))] {
		l.add(c)
	}
	for _, w := range sortedKeys(counts) {
		if pieces := l.cut(w); len(pieces) > 1 && len(pieces) <= opt.MaxWord {
			l.words = append(l.words, learnWord{pieces, counts[w]})
		}
	}
	for i, w := range l.words {
		for j := 1; j < len(w.pieces); j++ {
			l.count([2]int32{w.pieces[j-1], w.pieces[j]}, int32(i), w.count)
		}
	}
	for _, p := range l.pairs {
		l.queue.items = append(l.queue.items, queued{p, p.count})
	}
	l.queue.tokens = &l.tokens
	heap.Init(&l.queue)
	return l
}

// piece is the token of one character at byte i of a word.
func piece(i int, r rune) string {
	if i == 0 {
		return string(r)
	}
	return continuation + string(r)
}

// sortedKeys sorts by falling count, then by text.
func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), strings.Compare(a, b))
	})
	return keys
}

func (l *learner) add(s string) int32 {
	if id, ok := l.ids[s]; ok {
		return id
	}
	l.ids[s] = int32(len(l.tokens))
	l.tokens = append(l.tokens, s)
	return l.ids[s]
}

// cut cuts a word into characters; nil when one is not in the alphabet.
func (l *learner) cut(w string) []int32 {
	var pieces []int32
	for i, r := range w {
		id, ok := l.ids[piece(i, r)]
		if !ok {
			return nil
		}
		pieces = append(pieces, id)
	}
	return pieces
}

// count adds n occurrences of the pair in word w.
func (l *learner) count(pair [2]int32, w int32, n int) *learnPair {
	p := l.pairs[pair]
	if p == nil {
		p = &learnPair{pieces: pair, words: map[int32]struct{}{}}
		l.pairs[pair] = p
	}
	p.count += n
	if n > 0 {
		p.words[w] = struct{}{}
	}
	return p
}

// merge joins pairs until the vocabulary is full or no pair is frequent.
func (l *learner) merge(size int) {
	for len(l.tokens) < size && l.queue.Len() > 0 {
		top := heap.Pop(&l.queue).(queued)
		// Counts fall after they were queued; an entry is valid with its own
		// count only.
		if top.count != top.pair.count {
			if top.pair.count >= minMerge {
				heap.Push(&l.queue, queued{top.pair, top.pair.count})
			}
			continue
		}
		if top.count < minMerge {
			return
		}
		l.join(top.pair)
	}
}

// join replaces a pair by its joint piece in all words.
func (l *learner) join(p *learnPair) {
	a, b := p.pieces[0], p.pieces[1]
	id := l.add(l.tokens[a] + strings.TrimPrefix(l.tokens[b], continuation))
	touched := map[*learnPair]struct{}{}
	for w := range p.words {
		word := &l.words[w]
		s := word.pieces
		for i := 1; i < len(s); i++ {
			l.count([2]int32{s[i-1], s[i]}, w, -word.count)
		}
		out := s[:0]
		for i := 0; i < len(s); i++ {
			if i+1 < len(s) && s[i] == a && s[i+1] == b {
				out = append(out, id)
				i++
				continue
			}
			out = append(out, s[i])
		}
		word.pieces = out
		for i := 1; i < len(out); i++ {
			q := l.count([2]int32{out[i-1], out[i]}, w, word.count)
			if out[i-1] == id || out[i] == id {
				touched[q] = struct{}{}
			}
		}
	}
	delete(l.pairs, p.pieces)
	for q := range touched {
		heap.Push(&l.queue, queued{q, q.count})
	}
}

// queued is a pair with its count when it was queued.
type queued struct {
	pair  *learnPair
	count int
}

// pairHeap has the most frequent pair on top; among equals the one whose texts
// sort first.
type pairHeap struct {
	items  []queued
	tokens *[]string
}

func (h *pairHeap) Len() int      { return len(h.items) }
func (h *pairHeap) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *pairHeap) Push(x any)    { h.items = append(h.items, x.(queued)) }

func (h *pairHeap) Pop() any {
	n := len(h.items) - 1
	x := h.items[n]
	h.items = h.items[:n]
	return x
}

func (h *pairHeap) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	if a.count != b.count {
		return a.count > b.count
	}
	t := *h.tokens
	if a.pair.pieces[0] != b.pair.pieces[0] {
		return t[a.pair.pieces[0]] < t[b.pair.pieces[0]]
	}
	return t[a.pair.pieces[1]] < t[b.pair.pieces[1]]
}
