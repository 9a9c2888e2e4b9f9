package vector

import (
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

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
	// An element is kept if its 16 bits are below the threshold.
	threshold := uint64(math.Round(65536 * math.Max(0, math.Min(float64(keep), 1))))
	switch {
	case threshold == 0 || keep != keep:
		clear(dst)
	case threshold == 65536:
		for i := range dst {
			dst[i] = -1
		}
	case cpu.HasAVX2FMA:
		state := mix64(key) + counter*wordsPerMask*goldenGamma
		dropoutBitsVec(unsafe.SliceData(dst), len(dst), state, uint32(threshold-1))
	default:
		plainDropoutBits(dst, key, counter, threshold)
	}
}

// plainDropoutBits is DropoutBits for a threshold in [1, 65535]: bit 4*w+l of a
// mask word comes from 16-bit lane l of its random word w.
func plainDropoutBits(dst []int32, key, counter, threshold uint64) {
	const slots = 0x0000ffff0000ffff
	// Lanes 0 and 2, then 1 and 3, are spread to slots of 32 bits. An element is
	// dropped when the sum with 65536 - threshold carries into bit 16 of its slot.
	carry := (65536 - threshold) * 0x0000000100000001
	state := mix64(key) + counter*wordsPerMask*goldenGamma
	for i := range dst {
		var dropped uint64
		for range wordsPerMask {
			state += goldenGamma
			w := mix64(state)
			// Carries at bits 16 and 48 of each sum, moved to bits 14, 46 and 15, 47.
			even := (w&slots + carry) >> 2 & 0x0000400000004000
			odd := (w>>16&slots + carry) >> 1 & 0x0000800000008000
			dropped = dropped>>2&0x00003fff00003fff | even | odd
		}
		// Pairs of bits of the two halves take turns.
		dropped = (dropped | dropped<<8) & 0x00ff00ff00ff00ff
		dropped = (dropped | dropped<<4) & 0x0f0f0f0f0f0f0f0f
		dropped = (dropped | dropped<<2) & 0x3333333333333333
		dst[i] = ^int32(uint32(dropped) | uint32(dropped>>32)<<2)
	}
}
