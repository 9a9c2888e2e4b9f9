//go:build !amd64

package kernel

// tiledGemm is the built-in product in assembly, which this processor lacks.
type tiledGemm struct{ plainGemm }

func newTiled() *tiledGemm { return nil }

func newTiledBF16() *tiledGemm { return nil }

func (*tiledGemm) multiply(*Product) {}
