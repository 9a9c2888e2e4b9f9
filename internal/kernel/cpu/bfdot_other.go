//go:build !((linux || darwin) && arm64)

package cpu

func bfdot() bool { return false }
