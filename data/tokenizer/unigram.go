package tokenizer

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// unknownPenalty is how much worse than the worst token an unknown character is.
const unknownPenalty = 10

// unigram cuts a word into the tokens whose scores, logarithms of probabilities, have the largest sum
// (Kudo 2018), by Viterbi's algorithm over the bytes.
type unigram struct {
	ids    map[string]int32
	scores []float64
	tree   prefixTree
	unk    int32 // -1: none
	bytes  []int32
	worst  float64 // score of an unknown character
}

// unigramFile is the model of a tokenizer.json.
type unigramFile struct {
	Type         string       `json:"type"`
	Unk          *int32       `json:"unk_id"`
	Vocab        []scoredText `json:"vocab"`
	ByteFallback bool         `json:"byte_fallback"`
	Hidden       []int32      `json:"not_in_texts,omitempty"` // ids that no text is cut into
}

// scoredText is [text, score].
type scoredText struct {
	text  string
	score float64
}

// MarshalJSON implements json.Marshaler.
func (s scoredText) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.text, s.score}) }

func newUnigram(f *unigramFile) (*unigram, error) {
	if len(f.Vocab) == 0 {
		return nil, fmt.Errorf("tokenizer: tokenizer.json has no model.vocab")
	}
	m := &unigram{ids: make(map[string]int32, len(f.Vocab)), scores: make([]float64, 0, len(f.Vocab)), unk: -1,
		worst: math.Inf(1)}
	for i, t := range f.Vocab {
		m.ids[t.text] = int32(i) // of a text that stands there twice the last one, as in Hugging Face's tokenizers
		m.scores = append(m.scores, t.score)
		m.worst = min(m.worst, t.score)
	}
	m.worst -= unknownPenalty
	if f.Unk != nil {
		if *f.Unk < 0 || int(*f.Unk) >= len(f.Vocab) {
			return nil, fmt.Errorf("tokenizer: model.unk_id must be an id of the %d tokens (got %d)", len(f.Vocab),
				*f.Unk)
		}
		m.unk = *f.Unk
	}
	if f.ByteFallback {
		m.bytes = byteTokens(func(s string) (int32, bool) { id, ok := m.ids[s]; return id, ok })
	}
	seen := m.ids
	if len(f.Hidden) > 0 {
		seen = maps.Clone(m.ids)
	}
	for _, id := range f.Hidden {
		if id < 0 || int(id) >= len(f.Vocab) {
			return nil, fmt.Errorf("tokenizer: model.not_in_texts must be ids of the %d tokens (got %d)", len(f.Vocab),
				id)
		}
		delete(seen, f.Vocab[id].text)
	}
	m.tree = newPrefixTree(seen)
	return m, nil
}

// step is the best way to a place of a word.
type step struct {
	score float64
	from  int32 // -1: none yet
	id    int32
}

// appendWord implements model.
func (m *unigram) appendWord(ids []int32, word string) []int32 {
	best := make([]step, len(word)+1)
	for i := range best {
		best[i].from = -1
	}
	reach := func(to int, s step) {
		if best[to].from < 0 || s.score > best[to].score {
			best[to] = s
		}
	}
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRuneInString(word[i:])
		alone := false
		node := int32(0)
		for j := i; j < len(word); j++ {
			if node = m.tree.child(node, word[j]); node < 0 {
				break
			}
			if id := m.tree.token[node]; id >= 0 {
				reach(j+1, step{best[i].score + m.scores[id], int32(i), id})
				alone = alone || j+1-i == n
			}
		}
		if !alone {
			reach(i+n, step{best[i].score + m.worst, int32(i), m.unk})
		}
		i += n
	}
	start := len(ids)
	for end := len(word); end > 0; {
		s := best[end]
		from := s.from
		if s.id != m.unk {
			ids = append(ids, s.id)
			end = int(from)
			continue
		}
		for from > 0 && best[from].id == m.unk {
			from = best[from].from
		}
		ids = m.appendUnknown(ids, word[from:end])
		end = int(from)
	}
	slices.Reverse(ids[start:])
	return ids
}

// appendUnknown appends the tokens of unknown characters from the last to the first.
func (m *unigram) appendUnknown(ids []int32, s string) []int32 {
	if id, ok := m.ids[s]; ok {
		return append(ids, id)
	}
	start := len(ids)
	if ids, ok := appendBytes(ids, m.bytes, s); ok {
		slices.Reverse(ids[start:])
		return ids
	}
	if m.unk >= 0 {
		ids = append(ids, m.unk)
	}
	return ids
}

// prefixTree holds texts by their bytes. The children of a node lie beside each other, by their bytes; node 0
// is the root.
type prefixTree struct {
	label []byte
	token []int32 // -1: none ends here
	first []int32 // first child; those of node i end where those of i+1 begin
}

func newPrefixTree(ids map[string]int32) prefixTree {
	type entry struct {
		begin uint64 // the first bytes, by which nearly all are in order
		text  string
		id    int32
	}
	all := make([]entry, 0, len(ids))
	for s, id := range ids {
		if s != "" {
			var begin [8]byte
			copy(begin[:], s)
			all = append(all, entry{binary.BigEndian.Uint64(begin[:]), s, id})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if a.begin != b.begin {
			return cmp.Compare(a.begin, b.begin)
		}
		return strings.Compare(a.text, b.text)
	})
	nodes, before := 1, ""
	for _, e := range all {
		shared := 0
		for shared < min(len(before), len(e.text)) && before[shared] == e.text[shared] {
			shared++
		}
		nodes, before = nodes+len(e.text)-shared, e.text
	}
	t := prefixTree{make([]byte, 1, nodes), make([]int32, 1, nodes), make([]int32, 0, nodes+1)}
	t.token[0] = -1
	type span struct{ from, to int32 } // texts below a node
	level, next := []span{{0, int32(len(all))}}, []span(nil)
	for depth := 0; len(level) > 0; depth++ {
		for _, s := range level {
			t.first = append(t.first, int32(len(t.label)))
			for from := s.from; from < s.to; {
				c := all[from].text[depth]
				to := from + 1
				for to < s.to && all[to].text[depth] == c {
					to++
				}
				token := int32(-1)
				if len(all[from].text) == depth+1 {
					token = all[from].id
					from++
				}
				t.label, t.token = append(t.label, c), append(t.token, token)
				next = append(next, span{from, to})
				from = to
			}
		}
		level, next = next, level[:0]
	}
	t.first = append(t.first, int32(len(t.label)))
	return t
}

// child returns the child of a node by its byte, -1 where there is none.
func (t *prefixTree) child(node int32, c byte) int32 {
	lo, hi := t.first[node], t.first[node+1]
	for lo < hi {
		mid := (lo + hi) / 2
		switch {
		case t.label[mid] == c:
			return mid
		case t.label[mid] < c:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return -1
}
