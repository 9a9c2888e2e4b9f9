//go:build race

package allocs

// Race says whether the race detector is on. The race detector makes sync.Pool, which calls of C functions use,
// forget at random, so that allocations cannot be counted.
const Race = true
