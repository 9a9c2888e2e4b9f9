package data

import (
	"cmp"
	"slices"
	"strings"
)

// Stats describes the captions of a data set.
type Stats struct {
	Images       int       `json:"images"`
	ImageIDs     int       `json:"image_ids"` // distinct ids
	Captions     int       `json:"captions"`
	Words        int       `json:"words"`          // of all cleaned captions
	Distinct     int       `json:"distinct_words"` // different ones
	WordLengths  Quantiles `json:"caption_words"`
	TokenLengths Quantiles `json:"caption_tokens"`   // with [CLS]; zero without a tokenizer
	Histogram    []int     `json:"tokens_histogram"` // captions with i tokens; nil without a tokenizer
	Unknown      int       `json:"unknown_tokens"`   // [UNK] among the tokens
	PerImage     Quantiles `json:"captions_per_image"`

	UnknownWords []UnknownWord `json:"unknown_words,omitempty"` // the most frequent first
}

// UnknownWord is a word of captions that a vocabulary lacks, at least in part.
type UnknownWord struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

// UnknownWords counts the words of texts, split at white space, that tok has unknown tokens for, the most frequent
// first.
func UnknownWords(tok Tokenizer, counts map[string]int) (list []UnknownWord) {
	if tok == nil {
		return nil
	}
	for w, n := range counts {
		if CountUnknown(tok, tok.Encode(w, 0)) > 0 {
			list = append(list, UnknownWord{w, n})
		}
	}
	slices.SortFunc(list, func(a, b UnknownWord) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Word, b.Word))
	})
	return list
}

// Quantiles of a list of whole numbers.
type Quantiles struct {
	Min  int     `json:"min"`
	P50  int     `json:"p50"`
	P95  int     `json:"p95"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
	Mean float64 `json:"mean"`
}

// CountUnknown counts the tokens of a whole text that stand for what tok does not know; 0 where tok does not tell. What
// stands around a text does not count: its id may be the same, as CLIP's is.
func CountUnknown(tok Tokenizer, ids []int32) (n int) {
	u, ok := tok.(interface{ UnkID() int32 })
	if !ok {
		return 0
	}
	if e, ok := tok.(interface{ Ends() (begin, end int) }); ok {
		begin, end := e.Ends()
		ids = ids[begin : len(ids)-end]
	}
	for _, id := range ids {
		if id == u.UnkID() {
			n++
		}
	}
	return n
}

// NewStats counts the captions of ds, cleaned by a rule (see Clean), with their tokens by tok (nil:
// none). It opens no image.
func NewStats(ds Dataset, tok Tokenizer, clean string) Stats {
	s := Stats{Images: ds.Len()}
	ids := map[int64]struct{}{}
	seen := map[string]int{}
	var words, tokens, per []int
	for i := range ds.Len() {
		ids[ds.ImageID(i)] = struct{}{}
		captions := ds.Captions(i)
		per = append(per, len(captions))
		for _, c := range captions {
			c = Clean(clean, c, 0)
			w := strings.Fields(c)
			for _, x := range w {
				seen[x]++
			}
			words = append(words, len(w))
			s.Words += len(w)
			if tok == nil {
				continue
			}
			t := tok.Encode(c, 0)
			s.Unknown += CountUnknown(tok, t)
			tokens = append(tokens, len(t))
		}
	}
	s.ImageIDs, s.Captions, s.Distinct = len(ids), len(words), len(seen)
	s.WordLengths, s.TokenLengths, s.PerImage = NewQuantiles(words), NewQuantiles(tokens), NewQuantiles(per)
	if s.Unknown > 0 {
		s.UnknownWords = UnknownWords(tok, seen)
	}
	if len(tokens) > 0 {
		s.Histogram = make([]int, s.TokenLengths.Max+1)
		for _, n := range tokens {
			s.Histogram[n]++
		}
	}
	return s
}

// NewQuantiles sorts x and returns its quantiles, zeros of an empty list.
func NewQuantiles(x []int) Quantiles {
	if len(x) == 0 {
		return Quantiles{}
	}
	slices.Sort(x)
	sum := 0
	for _, v := range x {
		sum += v
	}
	// The smallest value that at least the share p of the list does not exceed.
	at := func(percent int) int { return x[max((len(x)*percent+99)/100-1, 0)] }
	return Quantiles{x[0], at(50), at(95), at(99), x[len(x)-1], float64(sum) / float64(len(x))}
}

// IdentityStats describes a data set by what its images show.
type IdentityStats struct {
	Identities  int       `json:"identities"`
	PerIdentity Quantiles `json:"images_per_identity"`
	Cameras     int       `json:"cameras"` // that are known
	Queries     int       `json:"queries"` // images that search
	Gallery     int       `json:"gallery"` // images that are searched
	// without an image of their identity by another camera in the gallery
	Unmatched int `json:"unmatched_queries"`
}

// NewIdentityStats counts the identities of ds. It opens no image.
func NewIdentityStats(ds Dataset) IdentityStats {
	s, _ := identityStats(ds)
	return s
}

// identityStats tells the queries without a match too.
func identityStats(ds Dataset) (s IdentityStats, unmatched []int) {
	type taken struct {
		id     int64
		camera int32
	}
	seen, _ := ds.(Seen)
	camera := func(i int) int32 {
		if seen == nil {
			return -1
		}
		return seen.Camera(i)
	}
	is := func(i int, other Role) bool { return seen != nil && seen.Role(i) == other }
	all, gallery, by, cameras := map[int64]int{}, map[int64]int{}, map[taken]int{}, map[int32]bool{}
	for i := range ds.Len() {
		id, c := identityOf(ds, i), camera(i)
		all[id]++
		if c >= 0 {
			cameras[c] = true
		}
		if !is(i, Query) {
			s.Gallery++
			gallery[id]++
			by[taken{id, c}]++
		}
	}
	for i := range ds.Len() {
		if is(i, Searched) {
			continue
		}
		s.Queries++
		id, c := identityOf(ds, i), camera(i)
		others := gallery[id]
		switch {
		case c >= 0:
			others -= by[taken{id, c}]
		case !is(i, Query): // itself
			others--
		}
		if others == 0 {
			unmatched = append(unmatched, i)
		}
	}
	var per []int
	for _, n := range all {
		per = append(per, n)
	}
	s.Identities, s.PerIdentity, s.Cameras, s.Unmatched = len(all), NewQuantiles(per), len(cameras), len(unmatched)
	return s, unmatched
}

// identities finds queries of a list with cameras or roles that no image of the gallery answers.
func (c *checker) identities(ds Dataset) {
	seen, ok := ds.(Seen)
	if !ok {
		return
	}
	listed := false
	for i := range ds.Len() {
		listed = listed || seen.Camera(i) >= 0 || seen.Role(i) != Either
	}
	if !listed {
		return
	}
	_, unmatched := identityStats(ds)
	for _, i := range unmatched {
		c.add(UnmatchedQuery, 1, ds.Name(i))
	}
}
