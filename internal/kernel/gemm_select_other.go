//go:build !amd64

package kernel

// newBuiltin returns the product without assembly: there are no tiles for this
// processor.
func newBuiltin() gemmBackend { return plainGemm{} }

// tiledBF16 is the built-in product in bfloat16, which this processor lacks.
type tiledBF16 struct{}

func newTiledBF16() *tiledBF16 { return nil }

func (*tiledBF16) multiply(*Product) {}
