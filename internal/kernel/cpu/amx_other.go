//go:build !linux || !amd64

package cpu

// allowAMX says that there are no registers of AMX: other systems are not known to give them.
func allowAMX() bool { return false }
