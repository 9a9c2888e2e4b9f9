package data

// denseIDs numbers the ids of a data set 0, 1, 2 ... in its order. It is nil where the ids are these
// numbers already.
type denseIDs map[int64]int32

func newDenseIDs(ds Dataset) (d denseIDs) {
	for i := range ds.Len() {
		id := ds.ImageID(i)
		if d == nil && id == int64(i) {
			continue
		}
		if d == nil {
			d = make(denseIDs, ds.Len())
			for j := range i {
				d[int64(j)] = int32(j)
			}
		}
		if _, known := d[id]; !known {
			d[id] = int32(len(d))
		}
	}
	return d
}

// of is the number of an id.
func (d denseIDs) of(id int64) int32 {
	if d == nil {
		return int32(id)
	}
	return d[id]
}

// count is the number of ids of n images.
func (d denseIDs) count(n int) int {
	if d == nil {
		return n
	}
	return len(d)
}

// HashID is the value of the column batch.IDs for an id of a source that has no end or
// no dense numbers: the id itself where it fits, else 31 bits of its hash (a row then
// agrees by chance with one of 65,536 queue entries once in 30,000 times).
func HashID(id int64) int32 {
	if id >= 0 && id < 1<<31 {
		return int32(id)
	}
	// Finaliser of SplitMix64 (Steele, Lea and Flood 2014).
	x := uint64(id)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int32((x ^ x>>31) >> 33)
}
