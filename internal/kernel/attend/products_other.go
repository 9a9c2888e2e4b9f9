//go:build !amd64

package attend

// of returns products in Go, the only ones here.
func (p Products) of(s Sizes) products { return newPlainAttention(s, p.BF16) }
