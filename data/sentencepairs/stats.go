package sentencepairs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
)

// Stats describes the pairs of a set.
type Stats struct {
	Pairs        int            `json:"pairs"`
	Sentences    int            `json:"sentences"` // different ones, as they are written
	Classes      []ClassCount   `json:"classes,omitempty"`
	Scores       *ScoreStats    `json:"scores,omitempty"`
	Distinct     int            `json:"distinct_words"`
	WordLengths  data.Quantiles `json:"sentence_words"`
	TokenLengths data.Quantiles `json:"sentence_tokens"` // zero without a tokenizer
	Unknown      int            `json:"unknown_tokens"`
	Cut          int            `json:"sentences_cut"` // different ones whose end is cut
	Counts       Counts         `json:"read"`
}

// ClassCount is the pairs of a class.
type ClassCount struct {
	Class string `json:"class"`
	Pairs int    `json:"pairs"`
}

// ScoreStats are those of scores.
type ScoreStats struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Measure says how sentences are measured.
type Measure struct {
	Tokenizer data.Tokenizer // nil: not in tokens
	Clean     string         // see data.Clean
	MaxWords  int            // words kept of a sentence; 0: all
	Tokens    int            // token positions of a sentence; 0: any number
}

// Length returns the words and the tokens of a sentence, and whether its end is cut.
func (m Measure) Length(sentence string) (words int, tokens []int32, cut bool) {
	whole := data.Clean(m.Clean, sentence, 0)
	kept := data.Clean(m.Clean, sentence, m.MaxWords)
	words, cut = len(strings.Fields(whole)), kept != whole
	if m.Tokenizer != nil {
		tokens = m.Tokenizer.Encode(kept, 0)
		cut = cut || m.Tokens > 0 && len(tokens) > m.Tokens
	}
	return words, tokens, cut
}

// Distinct returns the different sentences of the pairs, in the order in which they come.
func (s *Set) Distinct() (list []string) {
	seen := make(map[string]struct{}, 2*len(s.Pairs))
	for _, p := range s.Pairs {
		for _, x := range []string{p.A, p.B} {
			if _, known := seen[x]; !known {
				seen[x] = struct{}{}
				list = append(list, x)
			}
		}
	}
	return list
}

// Stats counts the sentences of a set.
func (s *Set) Stats(m Measure) Stats {
	st := Stats{Pairs: len(s.Pairs), Counts: s.Counts}
	for k, name := range s.Task.Classes {
		n := 0
		for _, p := range s.Pairs {
			if int(p.Label) == k {
				n++
			}
		}
		st.Classes = append(st.Classes, ClassCount{name, n})
	}
	if s.Task.Scored() && len(s.Pairs) > 0 {
		st.Scores = &ScoreStats{Min: s.Pairs[0].Score, Max: s.Pairs[0].Score}
		for _, p := range s.Pairs {
			st.Scores.Min, st.Scores.Max = min(st.Scores.Min, p.Score), max(st.Scores.Max, p.Score)
			st.Scores.Mean += p.Score / float64(len(s.Pairs))
		}
	}
	seen := map[string]struct{}{}
	var words, tokens []int
	list := s.Distinct()
	for _, x := range list {
		n, ids, cut := m.Length(x)
		words = append(words, n)
		if m.Tokenizer != nil {
			tokens = append(tokens, len(ids))
		}
		st.Unknown += data.CountUnknown(m.Tokenizer, ids)
		if cut {
			st.Cut++
		}
		for _, w := range strings.Fields(data.Clean(m.Clean, x, 0)) {
			seen[w] = struct{}{}
		}
	}
	st.Sentences, st.Distinct = len(list), len(seen)
	st.WordLengths, st.TokenLengths = data.NewQuantiles(words), data.NewQuantiles(tokens)
	return st
}

// Kinds of findings, besides data.Leak.
const (
	Unlabelled   = "unlabelled row"
	EmptyRow     = "empty sentence"
	BlankRow     = "blank sentence"
	LongSentence = "long sentence"
	Contradicted = "contradicted pair"
	RepeatedPair = "repeated pair"
)

// Check looks through a set and returns what it found, grave things first. others are other splits by name, which must
// have none of its pairs. At most so many examples of each kind are kept.
func (s *Set) Check(m Measure, others map[string]*Set, examples int) (found []data.Finding) {
	add := func(kind, hint string, n int, example string) {
		if n == 0 {
			return
		}
		i := slices.IndexFunc(found, func(f data.Finding) bool { return f.Kind == kind })
		if i < 0 {
			i = len(found)
			found = append(found, data.Finding{Kind: kind, Hint: hint})
		}
		f := &found[i]
		if f.Count += n; example != "" && len(f.Examples) < examples {
			f.Examples = append(f.Examples, example)
		}
	}
	add(data.BadRow, data.BadTextHint, s.Counts.Bad-len(s.Counts.Examples), "")
	for _, x := range s.Counts.Examples {
		add(data.BadRow, data.BadTextHint, 1, x)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		theirs := map[[2]string]struct{}{}
		for _, p := range others[name].Pairs {
			theirs[[2]string{p.A, p.B}] = struct{}{}
		}
		for _, p := range s.Pairs {
			if _, both := theirs[[2]string{p.A, p.B}]; both {
				add(data.Leak, "remove the pair from one split: its scores would be too good", 1,
					fmt.Sprintf("%s is in %s too", p, name))
			}
		}
	}
	add(Unlabelled, "nothing to do: left out", s.Counts.Unlabelled, "")
	add(EmptyRow, "nothing to do: left out", s.Counts.Empty, "")
	for _, x := range s.Distinct() {
		switch _, _, cut := m.Length(x); {
		case strings.TrimSpace(data.Clean(m.Clean, x, 0)) == "":
			add(BlankRow, "use another data.clean, which leaves something of it", 1, fmt.Sprintf("%.80q", x))
		case cut:
			add(LongSentence, "raise data.max_words or data.tokens, or accept that the end is cut", 1,
				fmt.Sprintf("%.80q", x))
		}
	}
	first := map[[2]string]Pair{}
	for _, p := range s.Pairs {
		key := [2]string{p.A, p.B}
		switch old, known := first[key]; {
		case !known:
			first[key] = p
		case old != p:
			add(Contradicted, "the pair is there with two labels: remove one", 1, p.String())
		default:
			add(RepeatedPair, "harmless: the pair counts twice", 1, p.String())
		}
	}
	return found
}

// String is the pair for people.
func (p Pair) String() string { return fmt.Sprintf("%.60q, %.60q", p.A, p.B) }
