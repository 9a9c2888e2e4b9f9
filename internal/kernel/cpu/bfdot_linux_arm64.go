package cpu

import (
	"encoding/binary"
	"os"
	"sync"
)

// bfdot says whether the processor has BFDOT, as the kernel tells programs (getauxval(3), AT_HWCAP2).
var bfdot = sync.OnceValue(func() bool {
	const hwcap2, bf16 = 26, 1 << 14
	text, err := os.ReadFile("/proc/self/auxv")
	for ; err == nil && len(text) >= 16; text = text[16:] {
		if binary.LittleEndian.Uint64(text) == hwcap2 {
			return binary.LittleEndian.Uint64(text[8:])&bf16 != 0
		}
	}
	return false
})
