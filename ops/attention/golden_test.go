package attention

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestAttentionGolden(t *testing.T) {
	for name, c := range optest.TorchCases(t, "attention.json") {
		t.Run(name, func(t *testing.T) {
			keep := float32(1)
			if _, ok := c["bits"]; ok {
				keep = 0.75
			}
			if _, ok := c["qkv"]; ok {
				c.Check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
					return SelfAttention(SelfArgs{QKV: get("qkv"), Lengths: get("lengths"), Bits: get("bits"), Len: 5, Heads: 2, Keep: keep})
				}, map[string]string{"qkv": "dqkv"})
				return
			}
			c.Check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				return CrossAttention(CrossArgs{Q: get("q"), KV: get("kv"), Index: get("index"), Lengths: get("lengths"), Bits: get("bits"), QueryLen: 3, KeyLen: 34, Heads: 2, Keep: keep})
			}, map[string]string{"q": "dq", "kv": "dkv"})
		})
	}
}
