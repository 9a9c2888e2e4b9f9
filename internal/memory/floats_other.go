//go:build !linux

package memory

// adviseHuge does nothing: there is no such request, or the system does it by itself.
func adviseHuge([]byte) {}
