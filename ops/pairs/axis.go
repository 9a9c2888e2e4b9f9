package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/tensor"
)

// Axis says what the rows of a matrix, or its columns, stand for.
type Axis = oncuda.Axis

// What there may be a row or a column for.
const (
	One       = oncuda.One       // all of the side
	Sequences = oncuda.Sequences // each sequence
	Tokens    = oncuda.Tokens    // each token that takes part
	joined    = oncuda.Joined    // each sequence and behind it its tokens: of features alone
)

// room is the most that a block has of a side, whose sequences have at most Len tokens.
type room = oncuda.Side

// sides are those of rows and columns.
type sides [2]room

// grid says what rows and columns stand for.
type grid [2]Axis

func (s sides) shape(g grid) tensor.Shape { return tensor.Shape{s[0].Size(g[0]), s[1].Size(g[1])} }

func (g grid) String() string { return fmt.Sprintf("%d%d", g[0], g[1]) }

// finest is the grid that both can be broadcast to.
func (g grid) finest(h grid) grid { return grid{max(g[0], h[0]), max(g[1], h[1])} }

// spans is what a block has of a side: how many tokens and sequences, and of each sequence where its tokens begin and
// how many there are. Tokens of a block on the host follow each other; on a device those of a sequence begin at a
// multiple of its room, and what is between is 0. Values of a sequence without a token are 0.
type spans []int32

// spansOf makes room for spans.
func spansOf(r room) spans { return make(spans, 2+2*r.Sequences) }

func (s spans) size(a Axis) int {
	switch a {
	case Tokens:
		return int(s[0])
	case Sequences:
		return int(s[1])
	case joined:
		return int(s[0] + s[1])
	}
	return 1
}

func (s spans) of(i int) (at, n int) { return int(s[2+2*i]), int(s[3+2*i]) }

// along returns the rows that belong to sequence i: one of the sequence's own, or of all with the first.
func (s spans) along(a Axis, i int) (at, end int) {
	switch {
	case a == Tokens:
		at, n := s.of(i)
		return at, at + n
	case a == joined:
		at, n := s.of(i)
		return at + i, at + n + i + 1
	case a == Sequences:
		return i, i + 1
	case i == 0:
		return 0, 1
	}
	return 0, 0
}
