package ops

// chains links the columns that share an id: first[i] is the first column with
// the id of row i, next[j] the next one with the id of column j, -1 the end. It
// costs one look at every column, however many rows there are.
type chains struct {
	first, next []int32
	table       []int32 // open-addressing hash table: ids, then heads of chains
}

// tableSize returns the number of slots for n ids: a power of two, at most half
// full.
func tableSize(n int) int {
	size := 4
	for size < 2*n {
		size *= 2
	}
	return size
}

// build links the columns. Ids that are negative belong to nobody.
func (c chains) build(rowIDs, colIDs []int32) {
	size := len(c.table) / 2
	ids, heads := c.table[:size], c.table[size:]
	for i := range heads {
		ids[i], heads[i] = -1, -1
	}
	for _, id := range rowIDs {
		if id >= 0 {
			ids[slot(ids, id)] = id
		}
	}
	for j := len(colIDs) - 1; j >= 0; j-- { // backwards, so that chains run forwards
		id := colIDs[j]
		if id < 0 {
			continue
		}
		if k := slot(ids, id); ids[k] == id {
			c.next[j], heads[k] = heads[k], int32(j)
		}
	}
	for i, id := range rowIDs {
		c.first[i] = -1
		if id >= 0 {
			c.first[i] = heads[slot(ids, id)]
		}
	}
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
