package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// rankedAtOnce is how many prefixes of candidates are read at a time at most.
const rankedAtOnce = 128

// keptPrefixes is how many prefixes of the candidates of a batch are kept at least, for those that go on from them.
const keptPrefixes = 1024

// Ranker scores candidates for what a decoder may write about the rows of a batch, such as a list of answers (ALBEF, Li
// et al. 2021, section 4, VQA): the score is the log-probability of the whole text. A prefix that candidates share is
// read once.
type Ranker struct {
	w      *Writer
	tree   prefixTree
	count  int
	top    int
	scores []float32
}

// Ranker returns a ranker of candidates, each the tokens of a text with those that stand around its words, which all
// begin with the same one. With top > 0 those with the top most probable first words alone are scored, of equal ones
// the first in the list; 0 scores all.
func (w *Writer) Ranker(candidates [][]int32, top int) (*Ranker, error) {
	tree, err := newPrefixTree(candidates, w.m.o.Vocab, w.m.cfg.Model.Text.Positions)
	if err != nil {
		return nil, err
	}
	if top < 0 || top >= len(candidates) {
		top = 0
	}
	return &Ranker{w: w, tree: tree, count: len(candidates), top: top}, nil
}

// Candidates returns K, the number of candidates.
func (r *Ranker) Candidates() int { return r.count }

// ranking is a batch that is ranked.
type ranking struct {
	*Ranker
	x      *nextTokens
	rows   []rankedRow
	cached int // places of the cache that are in use
}

// rankedRow is a row of the batch.
type rankedRow struct {
	sums   []float64 // log-probability of each prefix
	needed []bool    // prefixes that are read
	inner  []bool    // those that others go on from
	chosen []bool    // candidates
	place  []int32   // of the prefixes in the cache
	scores []float32
}

// Rank returns the scores (n, K) of the candidates for the n rows of b, -Inf for those that top leaves out. The next
// call overwrites them. It ends early with the error of ctx.
func (r *Ranker) Rank(ctx context.Context, b *batch.Batch) ([]float32, error) {
	read, err := r.w.read(ctx, b)
	if err != nil {
		return nil, err
	}
	n, places := b.Rows(), b.Rows()+max(r.tree.inner(), keptPrefixes)
	x, err := r.w.next(read, min(rankedAtOnce, 1<<bits.Len(uint(n*r.tree.widest()-1))), max(1, r.tree.depth()), places)
	if err != nil {
		return nil, err
	}
	r.scores = slices.Grow(r.scores[:0], n*r.count)[:n*r.count]
	k := &ranking{Ranker: r, x: x, rows: make([]rankedRow, n)}
	all := make([]int, n)
	for i := range k.rows {
		k.rows[i], all[i] = r.newRow(r.scores[i*r.count:][:r.count]), i
	}
	if err := k.level(ctx, all, r.tree.levels[0]); err != nil { // the first token of all rows
		return nil, err
	}
	for i := range k.rows {
		k.rows[i].choose(&r.tree, r.top)
	}
	for lo := 0; lo < n; { // as many rows at a time as there is room for
		hi, room := lo, places-n
		for hi < n && (hi == lo || count(k.rows[hi].inner) <= room) {
			room -= count(k.rows[hi].inner)
			hi++
		}
		k.cached = n
		for _, nodes := range r.tree.levels[1:] {
			if err := k.level(ctx, all[lo:hi], nodes); err != nil {
				return nil, err
			}
		}
		lo = hi
	}
	return r.scores, nil
}

// newRow begins a row.
func (r *Ranker) newRow(scores []float32) rankedRow {
	n := len(r.tree.nodes)
	x := rankedRow{sums: make([]float64, n), needed: make([]bool, n), inner: make([]bool, n),
		chosen: make([]bool, r.count), place: make([]int32, n), scores: scores}
	x.needed[0], x.inner[0] = true, true
	for i := range scores {
		scores[i], x.chosen[i] = float32(math.Inf(-1)), true
	}
	return x
}

// choose says which candidates are scored, and which prefixes are read for them, when the first token has been.
func (x *rankedRow) choose(t *prefixTree, top int) {
	if top > 0 {
		order := make([]int, len(x.chosen))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.scores[b], x.scores[a]) })
		for _, i := range order[top:] {
			x.chosen[i] = false
		}
	}
	clear(x.inner)
	for i, at := range t.last {
		if !x.chosen[i] || at > 0 { // else its one word has been read
			x.scores[i] = float32(math.Inf(-1))
		}
		if !x.chosen[i] {
			continue
		}
		for ; at > 0; at = t.nodes[at].parent {
			x.needed[at] = true
			if up := t.nodes[at].parent; up > 0 {
				x.inner[up] = true
			}
		}
	}
}

// level reads the prefixes of one length that rows need.
func (k *ranking) level(ctx context.Context, rows, nodes []int) error {
	type job struct{ row, node int }
	var jobs []job
	var tokens []token
	for _, i := range rows {
		x := &k.rows[i]
		for _, at := range nodes {
			if !x.needed[at] {
				continue
			}
			t := token{id: k.tree.nodes[at].token, row: i, before: k.before(x, at), place: -1}
			switch {
			case at == 0:
				t.place = i
			case x.inner[at]:
				t.place, k.cached = k.cached, k.cached+1
			}
			x.place[at] = int32(t.place)
			jobs, tokens = append(jobs, job{i, at}), append(tokens, t)
		}
	}
	return k.x.each(ctx, tokens, func(i int, logits []float32) {
		k.rows[jobs[i].row].take(&k.tree, jobs[i].node,
			logits)
	})
}

// before returns the places of the prefixes that a prefix goes on from, the shortest first.
func (k *ranking) before(x *rankedRow, at int) (places []int32) {
	for at > 0 {
		at = k.tree.nodes[at].parent
		places = append(places, x.place[at])
	}
	slices.Reverse(places)
	return places
}

// take adds the log-probabilities of the tokens behind a prefix.
func (x *rankedRow) take(t *prefixTree, at int, logits []float32) {
	lse := float64(vector.LogSumExp(logits))
	for _, e := range t.nodes[at].edges {
		sum := x.sums[at] + float64(logits[e.token]) - lse
		if e.to >= 0 {
			x.sums[e.to] = sum
		}
		if at == 0 { // of all candidates with this first word, for choose
			for _, i := range e.under {
				x.scores[i] = float32(sum)
			}
			continue
		}
		for _, i := range e.ends {
			if x.chosen[i] {
				x.scores[i] = float32(sum)
			}
		}
	}
}

// count returns how many are true.
func count(list []bool) (n int) {
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}

// prefixTree is the distinct prefixes of candidates that something follows.
type prefixTree struct {
	nodes  []prefix // the first is the token that all begin with, each behind the one that it goes on from
	levels [][]int  // nodes by their length
	last   []int    // of each candidate the prefix without its last token
}

// prefix is one or more tokens from the first of a candidate on.
type prefix struct {
	token  int32 // the last one
	parent int   // the prefix without it, -1 of the first
	length int   // tokens before token
	edges  []prefixEdge
}

// prefixEdge is a token that follows a prefix.
type prefixEdge struct {
	token int32
	to    int   // the prefix with it, -1: nothing follows
	ends  []int // candidates that end with it
	under []int // candidates that go on with it, behind the first prefix
}

// newPrefixTree returns the tree of candidates of a vocabulary, of at most so many tokens.
func newPrefixTree(candidates [][]int32, vocab, most int) (t prefixTree, err error) {
	if len(candidates) == 0 {
		return t, errors.New("model: there are no candidates: want at least one")
	}
	for i, c := range candidates {
		switch {
		case len(c) < 2:
			return t, fmt.Errorf("model: candidate %d has %d tokens: want at least 2, the first and the last of which stand around its words", i, len(c))
		case len(c)-1 > most:
			return t, fmt.Errorf("model: candidate %d has %d tokens: want at most %d, one more than model.text.positions: shorten it or leave it out", i, len(c), most+1)
		case c[0] != candidates[0][0]:
			return t, fmt.Errorf("model: candidate %d begins with the token %d, candidate 0 with %d: want one token that begins all", i, c[0], candidates[0][0])
		}
		for _, id := range c {
			if id < 0 || int(id) >= vocab {
				return t, fmt.Errorf("model: candidate %d has the token %d: want [0, %d)", i, id, vocab)
			}
		}
	}
	t.nodes = []prefix{{token: candidates[0][0], parent: -1}}
	for i, c := range candidates {
		at := 0
		for k := 1; k < len(c); k++ {
			e := t.edge(at, c[k])
			if at == 0 {
				e.under = append(e.under, i)
			}
			if k == len(c)-1 {
				e.ends = append(e.ends, i)
				break
			}
			if e.to < 0 {
				e.to = len(t.nodes)
				t.nodes = append(t.nodes, prefix{token: c[k], parent: at, length: k})
				at = len(t.nodes) - 1
				continue
			}
			at = e.to
		}
		t.last = append(t.last, at)
	}
	for i, n := range t.nodes {
		if n.length == len(t.levels) {
			t.levels = append(t.levels, nil)
		}
		t.levels[n.length] = append(t.levels[n.length], i)
	}
	return t, nil
}

// edge returns that of a token behind a prefix.
func (t *prefixTree) edge(at int, token int32) *prefixEdge {
	n := &t.nodes[at]
	for i := range n.edges {
		if n.edges[i].token == token {
			return &n.edges[i]
		}
	}
	n.edges = append(n.edges, prefixEdge{token: token, to: -1})
	return &n.edges[len(n.edges)-1]
}

// depth returns how many tokens are before the last one of the longest prefix.
func (t *prefixTree) depth() int { return len(t.levels) - 1 }

// widest returns the number of prefixes of the commonest length.
func (t *prefixTree) widest() (n int) {
	for _, l := range t.levels {
		n = max(n, len(l))
	}
	return n
}

// inner returns how many prefixes but the first others go on from.
func (t *prefixTree) inner() (n int) {
	for _, x := range t.nodes[1:] {
		for _, e := range x.edges {
			if e.to >= 0 {
				n++
				break
			}
		}
	}
	return n
}
