//go:build !amd64 && !arm64

package attend

// of returns products in Go, the only ones here.
func (p Products) of(s Sizes) products { return newPlainAttention(s, p.BF16) }

// blocks returns nil: products compute whole blocks, too.
func (p Products) blocks(Sizes) blocks { return nil }

func (s Sizes) blocksScratch() int { return 0 }
