package evex

import "testing"

// The bytes are those of GNU as 2.40 for the instruction in the name, which lists
// the operands from source to destination.
func TestEVEX(t *testing.T) {
	tests := []struct {
		name                               string
		prefix, opcode, dst, first, second int
		want                               [6]byte
	}{
		{"vdpbf16ps %zmm30,%zmm28,%zmm17", prefixF3, 0x52, 17, 28, 30, [6]byte{0x62, 0x82, 0x1e, 0x40, 0x52, 0xce}},
		{"vdpbf16ps %zmm1,%zmm2,%zmm0", prefixF3, 0x52, 0, 2, 1, [6]byte{0x62, 0xf2, 0x6e, 0x48, 0x52, 0xc1}},
		{"vcvtne2ps2bf16 %zmm9,%zmm20,%zmm31", prefixF2, 0x72, 31, 20, 9, [6]byte{0x62, 0x42, 0x5f, 0x40, 0x72, 0xf9}},
		{"vcvtneps2bf16 %zmm29,%ymm7", prefixF3, 0x72, 7, 0, 29, [6]byte{0x62, 0x92, 0x7e, 0x48, 0x72, 0xfd}},
	}
	for _, tt := range tests {
		if got := evex(tt.prefix, tt.opcode, tt.dst, tt.first, tt.second); got != tt.want {
			t.Errorf("%s: got % x, want % x", tt.name, got, tt.want)
		}
	}
}
