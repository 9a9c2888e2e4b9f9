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
					return SelfAttention(get("qkv"), get("lengths"), get("bits"), 5, 2, keep)
				}, map[string]string{"qkv": "dqkv"})
				return
			}
			c.Check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				return CrossAttention(get("q"), get("kv"), get("index"), get("lengths"), get("bits"), 3, 34, 2, keep)
			}, map[string]string{"q": "dq", "kv": "dkv"})
		})
	}
}
