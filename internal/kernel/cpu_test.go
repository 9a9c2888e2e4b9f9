package kernel

import "testing"

func TestCPULevelsOnlyLower(t *testing.T) {
	defer setCPULevel("")
	setCPULevel("")
	avx2, avx512 := hasAVX2FMA, hasAVX512
	tests := []struct {
		level        string
		avx2, avx512 bool
	}{
		{levelPlain, false, false},
		{levelAVX2, avx2, false},
		{levelAVX512, avx2, avx512},
		{"unknown", avx2, avx512},
	}
	for _, tt := range tests {
		setCPULevel(tt.level)
		if hasAVX2FMA != tt.avx2 || hasAVX512 != tt.avx512 {
			t.Errorf("%q: got avx2 %v and avx512 %v, want %v and %v", tt.level, hasAVX2FMA, hasAVX512, tt.avx2, tt.avx512)
		}
	}
}
