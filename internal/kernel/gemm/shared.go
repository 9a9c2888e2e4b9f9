//go:build amd64 || arm64

package gemm

import (
	"sync"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// shared holds the tiles of Shared by instruction set.
var shared struct {
	sync.Mutex
	of map[string]*Tiled
}

// Shared returns the built-in product of float32 for the instruction set in use, the same one at every call: for
// engines whose backend has a product of its own. It returns nil where New does.
func Shared() *Tiled {
	shared.Lock()
	defer shared.Unlock()
	if shared.of == nil {
		shared.of = map[string]*Tiled{}
	}
	t := shared.of[cpu.Level()]
	if t == nil {
		t = New()
		shared.of[cpu.Level()] = t
	}
	return t
}
