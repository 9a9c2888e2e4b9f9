package cuda

import "testing"

// TestInWords: no number of bytes is told as 0, or with fewer than two figures.
func TestInWords(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 bytes", 4000: "4000 bytes", 1<<20 - 1: "1048575 bytes", 1 << 20: "1.00 MiB", 4000000: "3.81 MiB",
		1<<30 - 1<<20: "1023.00 MiB", 1 << 30: "1.00 GiB", 85 << 30: "85.00 GiB"} {
		if got := inWords(bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}
