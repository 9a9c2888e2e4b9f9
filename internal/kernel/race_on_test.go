//go:build race

package kernel

// raceEnabled: the race detector makes sync.Pool, which calls of C functions use,
// forget at random, so that allocations cannot be counted.
const raceEnabled = true
