package vector

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// PathCos sets dst[j] = cos(min(theta_j, limit) * pi/limit), the score of a point at the
// distance theta_j = entry[owner[j]] + reach[j] in radians (GeoMM, Eq. 3 and Section 3.5):
// entry holds the distances to K centres, owner (N) the centre of each point and reach (N)
// the angle between them. A distance of limit or more, +Inf among them, gives -1, NaN
// gives NaN. A negative distance, which a soft minimum may give, counts by its size, as
// the cosine is even.
//
// The error is at most 2e-7 beyond the one rounding of theta. limit is positive and
// finite. An owner outside [0, K) is a panic, after dst has been written. dst may be the
// same slice as reach, but not entry.
func PathCos(dst, entry []float32, owner []int32, reach []float32, limit float32) {
	n := len(dst)
	preach := at(reach, n)
	turn, turnLo := checkPath(n, entry, owner, limit)
	if !cpu.HasAVX2FMA {
		plainPathCos(dst, entry, owner, reach, limit)
		return
	}
	if n == 0 {
		return
	}
	checkOwner(pathCosVec(unsafe.SliceData(dst), unsafe.SliceData(entry), unsafe.SliceData(owner), preach, n,
		len(entry)-1, limit, turn, turnLo), entry)
}

// PathCosSlope sets dst[j] = -dy[j] * sin(theta_j * pi/limit) * pi/limit, the gradient of
// PathCos by theta_j, and 0 where theta_j >= limit (or <= -limit). The error is at most
// 4e-7 |dy| pi/limit. The rest is as in PathCos; dst may be the same slice as reach or dy.
func PathCosSlope(dst, entry []float32, owner []int32, reach, dy []float32, limit float32) {
	n := len(dst)
	preach, pdy := at(reach, n), at(dy, n)
	turn, turnLo := checkPath(n, entry, owner, limit)
	if !cpu.HasAVX2FMA {
		plainPathCosSlope(dst, entry, owner, reach, dy, limit)
		return
	}
	if n == 0 {
		return
	}
	checkOwner(pathCosSlopeVec(unsafe.SliceData(dst), unsafe.SliceData(entry), unsafe.SliceData(owner), preach, pdy, n,
		len(entry)-1, limit, turn, turnLo), entry)
}

// checkPath panics unless there are n owners, an entry for any and a limit to divide by.
// It returns pi/limit in two parts.
func checkPath(n int, entry []float32, owner []int32, limit float32) (turn, turnLo float32) {
	if len(owner) < n {
		panic("kernel: vector: a slice is shorter than the first")
	}
	if n > 0 && len(entry) == 0 {
		panic("kernel: path: no entries for the owners")
	}
	if !(limit >= 0x1p-100 && limit <= 0x1p100) {
		panic(fmt.Sprintf("kernel: path: limit (got %v) is not a positive finite angle", limit))
	}
	exact := math.Pi / float64(limit)
	turn = float32(exact)
	return turn, float32(exact - float64(turn))
}

// checkOwner panics if the largest owner, negative ones counted as larger than all, has
// no entry.
func checkOwner(largest uint32, entry []float32) {
	if uint64(largest) >= uint64(len(entry)) {
		panic(fmt.Sprintf("kernel: path: owner (got %d) is not below %d", int32(largest), len(entry)))
	}
}

func plainPathCos(dst, entry []float32, owner []int32, reach []float32, limit float32) {
	turn := math.Pi / float64(limit)
	for j := range dst {
		theta := math.Abs(float64(entry[owner[j]] + reach[j]))
		if theta > float64(limit) {
			theta = float64(limit)
		}
		dst[j] = float32(math.Cos(theta * turn))
	}
}

func plainPathCosSlope(dst, entry []float32, owner []int32, reach, dy []float32, limit float32) {
	turn := math.Pi / float64(limit)
	for j := range dst {
		theta := entry[owner[j]] + reach[j]
		if theta >= limit || theta <= -limit {
			dst[j] = 0
			continue
		}
		dst[j] = float32(-float64(dy[j]) * math.Sin(float64(theta)*turn) * turn)
	}
}
