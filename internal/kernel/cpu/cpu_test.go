package cpu

import (
	"fmt"
	"testing"
)

func TestCPULevelsOnlyLower(t *testing.T) {
	defer SetLevel("")
	SetLevel("")
	avx2, avx512, neon := HasAVX2FMA, HasAVX512, HasNEON
	tests := []struct {
		level        string
		avx2, avx512 bool
	}{
		{Plain, false, false},
		{AVX2, avx2, false},
		{AVX512, avx2, avx512},
		{"unknown", avx2, avx512},
	}
	for _, tt := range tests {
		SetLevel(tt.level)
		if HasAVX2FMA != tt.avx2 || HasAVX512 != tt.avx512 {
			t.Errorf("%q: got avx2 %v and avx512 %v, want %v and %v", tt.level, HasAVX2FMA, HasAVX512, tt.avx2, tt.avx512)
		}
		if want := neon && tt.level != Plain; HasNEON != want || HasVectors != (HasAVX2FMA || want) {
			t.Errorf("%q: got neon %v and vectors %v, want %v and %v", tt.level, HasNEON, HasVectors, want, HasAVX2FMA || want)
		}
	}
}

func TestCheckEnvironment(t *testing.T) {
	for level, want := range map[string]string{"": "", Plain: "", AVX2: "", AVX512: "", NEON: "",
		"sse": `GEOALIGN_CPU: must be plain, avx2, avx512, amx or neon (got "sse"): unset it for all that the processor has`} {
		t.Setenv(variable, level)
		err := CheckEnvironment()
		if got := fmt.Sprint(err); (want == "") != (err == nil) || want != "" && got != want {
			t.Errorf("%q: got %v", level, err)
		}
	}
}
