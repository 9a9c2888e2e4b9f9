//go:build !amd64

package kernel

// newBuiltin returns the product without assembly: there are no tiles for this
// processor.
func newBuiltin() gemmBackend { return plainGemm{} }
