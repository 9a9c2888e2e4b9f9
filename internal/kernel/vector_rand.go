package kernel

import "math"

// Words of SplitMix64 (Steele, Lea and Flood 2014, figure 17) are a function of
// their number alone, so any part of a sequence can be made without the rest.
const goldenGamma = 0x9e3779b97f4a7c15

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// wordsPerMask is how many random words one mask word of 32 elements takes: 16
// bits an element.
const wordsPerMask = 8

// DropoutBits fills dst with independent bits that are one with probability keep,
// rounded to a multiple of 1/65536, for Dropout. The word dst[i] depends on key,
// counter+i and keep alone: parts of a mask may be filled in any order, by calls
// whose counters are the positions of their first words. With keep >= 1 all bits
// are one, with keep <= 0 (or NaN) all are zero.
func DropoutBits(dst []int32, key, counter uint64, keep float32) {
	switch {
	case !(keep > 0):
		clear(dst)
		return
	case keep >= 1:
		for i := range dst {
			dst[i] = -1
		}
		return
	}
	const slots = 0x0000ffff0000ffff
	// An element is dropped if its 16 bits are at least the threshold, which is
	// when the sum with 65536 - threshold carries into bit 16 of its slot.
	threshold := uint64(math.Round(float64(keep) * 65536))
	carry := (65536 - threshold) * 0x0000000100000001
	state := mix64(key) + counter*wordsPerMask*goldenGamma
	for i := range dst {
		var dropped uint64
		for range wordsPerMask {
			state += goldenGamma
			w := mix64(state)
			// Carries at bits 16 and 48 of each sum, moved to bits 0, 32 and 1, 33.
			even := (w&slots + carry) >> 16 & 0x0000000100000001
			odd := (w>>16&slots + carry) >> 15 & 0x0000000200000002
			dropped = dropped<<2 | even | odd
		}
		dst[i] = ^int32(uint32(dropped) | uint32(dropped>>32)<<16)
	}
}
