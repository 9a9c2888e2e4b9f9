package cpu

import "testing"

// The registers are those of the processors named.
func TestLevel2(t *testing.T) {
	type leaf struct{ leaf, sub uint32 }
	type registers [4]uint32
	tests := map[string]struct {
		leaves map[leaf]registers
		want   int
	}{
		"Zen 5: leaf 4 is empty": {map[leaf]registers{{0, 0}: {16}, {0x80000000, 0}: {0x80000028},
			{0x8000001d, 0}: {0x121, 11<<22 | 63, 63}, {0x8000001d, 1}: {0x122, 7<<22 | 63, 63}, {0x8000001d, 2}: {0x143, 15<<22 | 63, 1023}}, 1 << 20},
		"Sapphire Rapids": {map[leaf]registers{{0, 0}: {32}, {4, 0}: {0x121, 11<<22 | 63, 63}, {4, 1}: {0x122, 7<<22 | 63, 63},
			{4, 2}: {0x143, 15<<22 | 63, 2047}}, 2 << 20},
		"nothing said": {map[leaf]registers{{0, 0}: {1}, {0x80000000, 0}: {0x80000008}}, 0},
		"no such range: a processor answers with its last leaf": {map[leaf]registers{{0, 0}: {2}, {0x80000000, 0}: {2}}, 0},
	}
	for name, tt := range tests {
		got := level2(func(l, sub uint32) (eax, ebx, ecx, edx uint32) {
			r := tt.leaves[leaf{l, sub}]
			return r[0], r[1], r[2], r[3]
		})
		if got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
	t.Logf("this processor: %d", Level2())
}
