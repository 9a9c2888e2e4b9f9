//go:build !race

package kerneltest

// Race says whether the race detector is on.
const Race = false
