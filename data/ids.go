package data

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
