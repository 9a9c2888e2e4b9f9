package chain

import "github.com/geoalign/geoalign/internal/exec"

// Block is the number of columns that a thread looks at in one go: a row's logits and
// its teacher's stay in the first-level cache while it does. It is fixed, so that the
// result does not depend on the number of threads.
const Block = 4096

// Blocks returns the number of blocks of columns.
func Blocks(cols int) int { return (cols + Block - 1) / Block }

// Chains links the columns that share an id: first[i] is the first column with
// the id of row i, next[j] the next one with the id of column j, -1 the end. It
// costs one look at every column, however many rows there are.
type Chains struct {
	First, Next []int32
	Table       []int32 // open-addressing hash table: ids, then heads of chains
}

// TableSize returns the number of slots for n ids: a power of two, at most one in eight
// in use, so that the first look nearly always tells that an id is not there.
func TableSize(n int) int {
	size := 256
	for size < 8*n {
		size *= 2
	}
	return size
}

// split returns the two halves of the table.
func (c Chains) split() (ids, heads []int32) {
	size := len(c.Table) / 2
	return c.Table[:size], c.Table[size:]
}

// begin fills the table with the ids of the rows. Ids that are negative belong to nobody.
func (c Chains) begin(rowIDs []int32) {
	ids, heads := c.split()
	for i := range heads {
		ids[i], heads[i] = -1, -1
	}
	for _, id := range rowIDs {
		if id >= 0 {
			ids[slot(ids, id)] = id
		}
	}
}

// mark looks up columns [lo, hi): next becomes the slot of a column's id, -1 for one that
// no row has. It reports whether there was any. Ranges may be marked at the same time.
func (c Chains) mark(colIDs []int32, lo, hi int) (found bool) {
	ids, _ := c.split()
	for j := lo; j < hi; j++ {
		c.Next[j] = -1
		id := colIDs[j]
		if id < 0 {
			continue
		}
		if k := slot(ids, id); ids[k] == id {
			c.Next[j], found = int32(k), true
		}
	}
	return found
}

// link puts the marked columns [lo, hi) before those that have been linked.
func (c Chains) link(lo, hi int) {
	_, heads := c.split()
	for j := hi - 1; j >= lo; j-- { // backwards, so that chains run forwards
		if k := c.Next[j]; k >= 0 {
			c.Next[j], heads[k] = heads[k], int32(j)
		}
	}
}

// end looks up the rows' first columns.
func (c Chains) end(rowIDs []int32) {
	ids, heads := c.split()
	for i, id := range rowIDs {
		c.First[i] = -1
		if id >= 0 {
			c.First[i] = heads[slot(ids, id)]
		}
	}
}

// Match links columns on several threads: each looks up blocks of them, and few blocks
// of a large queue hold any column that is asked for.
type Match struct {
	Chains
	colIDs []int32
	found  []bool // for each block
	body   func(worker, lo, hi int)
}

// New returns what links the columns of c, with memory of its own.
func New(c Chains) *Match {
	m := &Match{Chains: c, found: make([]bool, Blocks(len(c.Next)))}
	m.body = func(_, lo, hi int) {
		for b := lo; b < hi; b++ {
			m.found[b] = m.mark(m.colIDs, b*Block, min((b+1)*Block, len(m.colIDs)))
		}
	}
	return m
}

// Run links the columns.
func (m *Match) Run(e exec.Engine, rowIDs, colIDs []int32) {
	m.colIDs = colIDs
	m.begin(rowIDs)
	blocks := Blocks(len(colIDs))
	e.For(blocks, 1, m.body)
	for b := blocks - 1; b >= 0; b-- {
		if m.found[b] {
			m.link(b*Block, min((b+1)*Block, len(colIDs)))
		}
	}
	m.end(rowIDs)
}

// slot returns where id is in the table, or the free slot where it would go.
func slot(ids []int32, id int32) int {
	mask := uint32(len(ids) - 1)
	h := uint32(id) * 2654435769 // golden ratio times 2^32 (Knuth, volume 3, section 6.4)
	for k := (h >> 16) & mask; ; k = (k + 1) & mask {
		if ids[k] == id || ids[k] < 0 {
			return int(k)
		}
	}
}
