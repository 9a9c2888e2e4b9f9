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
			if _, ok := c["table"]; ok {
				c.Check(t, 2e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
					return RelativeBias(get("table"), 140, 140, 128)
				}, map[string]string{"table": "dtable"})
				return
			}
			if _, ok := c["bias"]; ok {
				c.Check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
					return SelfAttention(SelfArgs{QKV: get("qkv"), Lengths: get("lengths"), Bias: get("bias"), Causal: name == "causal", Len: 5, Heads: 2, Keep: 1})
				}, map[string]string{"qkv": "dqkv", "bias": "dbias"})
				return
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
