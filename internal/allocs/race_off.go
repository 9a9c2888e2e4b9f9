//go:build !race

package allocs

// Race says whether the race detector is on.
const Race = false
