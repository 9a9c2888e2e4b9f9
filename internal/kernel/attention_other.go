//go:build !amd64

package kernel

func (p AttentionProducts) of(s AttentionSizes) attentionProducts {
	return newPlainAttention(s, p.BF16)
}
