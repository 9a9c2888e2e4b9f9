//go:build !amd64

package kernel

func (e *Engine) attentionProducts(s AttentionSizes) attentionProducts {
	return newPlainAttention(s, e.bf16)
}
