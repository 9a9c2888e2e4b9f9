package cpu

// cpuid is the instruction CPUID.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// Level2 returns the bytes of the level-2 cache of a core as the processor tells, 0 where it does not.
func Level2() int {
	return level2(cpuid)
}

// level2 reads the deterministic cache parameters: leaf 4 (Intel 64 manual, volume 2, CPUID), on AMD the same fields in
// leaf 8000001D (AMD64 manual, volume 3, appendix E).
func level2(cpuid func(leaf, sub uint32) (eax, ebx, ecx, edx uint32)) int {
	for _, leaf := range [][2]uint32{{0, 4}, {0x80000000, 0x8000001d}} {
		if last, _, _, _ := cpuid(leaf[0], 0); last < leaf[1] || last>>16 != leaf[0]>>16 {
			continue
		}
		for sub := range uint32(8) {
			eax, ebx, ecx, _ := cpuid(leaf[1], sub)
			const none, instructions = 0, 2
			kind, level := eax&31, eax>>5&7
			if kind == none {
				break
			}
			if level == 2 && kind != instructions {
				// ways, partitions, line, sets
				return int(ebx>>22+1) * int(ebx>>12&1023+1) * int(ebx&4095+1) * int(ecx+1)
			}
		}
	}
	return 0
}
