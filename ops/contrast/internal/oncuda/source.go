package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// oneBlock is the grid of a kernel that puts rows together.
func oneBlock(*exec.DeviceCall) cuda.Grid { return cuda.Grid{Threads: 1024} }

// eachElement is the grid of a kernel with a thread for each element of the result.
func eachElement(c *exec.DeviceCall) cuda.Grid {
	return cuda.Each(c.Out.Shape.TotalSize())
}

// powerOfTwo returns the smallest power of two from lo to hi that is not below n, or hi.
func powerOfTwo(n, lo, hi int) int {
	p := lo
	for p < n && p < hi {
		p *= 2
	}
	return p
}
