package model

import (
	"errors"
	"fmt"
)

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
