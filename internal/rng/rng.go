// Package rng derives every random number of a run from one seed.
//
// A stream is a pure function of (seed, name, index): nothing has to be saved
// but the index, which is a step or sample counter that the checkpoint holds
// anyway. So a resumed run draws the same numbers as an uninterrupted one.
package rng

import (
	"hash/fnv"
	"math/rand/v2"
)

// Names of the streams of a run.
const (
	Init      = "init"
	Order     = "order"
	Lengths   = "lengths"
	Caption   = "caption"
	Augment   = "augment"
	Mask      = "mask"
	Mix       = "mix"
	Dropout   = "dropout"
	Patches   = "patches"
	Regions   = "regions"
	Shuffle   = "shuffle"
	Negatives = "negatives"
	Queue     = "queue"
	Scenes    = "scenes"
	KMeans    = "kmeans"
	Bootstrap = "bootstrap"

	Neighbours = "neighbours"
	Pool       = "pool"
	Identities = "identities"
	Rotation   = "rotation"
)

// New returns the generator of the stream name of seed at position index.
func New(seed uint64, name string, index uint64) *rand.Rand {
	return rand.New(rand.NewPCG(Key(seed, name), mix(index)))
}

// Key returns a 64-bit key for the stream name of seed.
func Key(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(seed ^ mix(h.Sum64()))
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
