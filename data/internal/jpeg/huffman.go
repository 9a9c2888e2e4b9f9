package jpeg

// lookBits is the length of the codes that a table finds in one look.
const lookBits = 10

// codes are a table as a file has it: the number of codes by length, and their symbols.
type codes struct {
	ok      bool
	counts  [16]uint8
	symbols [256]uint8
}

// huffman decodes one table of codes (annex C).
type huffman struct {
	made codes // what it was made of
	// values holds for the next lookBits bits a value << 16 | coefficients that it comes behind << 8 | bits of
	// code and value together. An end of the block is a value of 0 behind endOfBlock. 0: one has to look closer.
	values [1 << lookBits]int32
	// found holds for the next lookBits bits the symbol << 8 | length of its code, 0 for a longer code.
	found [1 << lookBits]uint16
	// limit[l] is above the codes of length l, as 16 bits from the top; 0 where there is none.
	limit  [17]uint32
	offset [17]int32 // symbols[offset[l] + code] of a code of length l
}

// endOfBlock is behind all coefficients.
const endOfBlock = 127

// make makes the table of codes. It returns false for numbers that are no code: more codes than a length has, one of
// ones alone, or, of differences of means, symbols above 15.
func (h *huffman) make(from *codes, means bool) bool {
	if h.made == *from {
		return true
	}
	h.made.ok = false
	clear(h.values[:])
	clear(h.found[:])
	code, k := uint32(0), 0
	for l := 1; l <= 16; l++ {
		n := int(from.counts[l-1])
		h.offset[l] = int32(k) - int32(code)
		if n > 0 && code+uint32(n) >= 1<<l || k+n > 256 {
			return false
		}
		for i := range n {
			if means && from.symbols[k+i] > 15 {
				return false
			}
			if l <= lookBits {
				s := uint16(from.symbols[k+i])<<8 | uint16(l)
				at := (code + uint32(i)) << (lookBits - l)
				for j := range uint32(1) << (lookBits - l) {
					h.found[at+j] = s
				}
			}
		}
		code += uint32(n)
		k += n
		h.limit[l] = 0
		if n > 0 {
			h.limit[l] = code << (16 - l)
		}
		code <<= 1
	}
	for i, s := range h.found {
		l, size, run := int(s&0xff), int(s>>8&0xf), int32(s>>12)
		switch {
		case l == 0 || l+size > lookBits:
		case size > 0:
			v := int32(i>>(lookBits-l-size)) & (1<<size - 1)
			h.values[i] = extend(v, size)<<16 | run<<8 | int32(l+size)
		case run == 0:
			h.values[i] = endOfBlock<<8 | int32(l)
		}
	}
	h.made = *from
	return true
}

// extend is EXTEND of section F.2.2.1: the value of size bits, 0 < size <= 15.
func extend(v int32, size int) int32 {
	if v < 1<<(size-1) {
		v += -1<<size + 1
	}
	return v
}

// symbol decodes a symbol of at most 17 bits of acc. A code that the table does not have is 0, of 17 bits.
func (h *huffman) symbol(acc uint64) (symbol, length int) {
	if s := h.found[acc>>(64-lookBits)]; s != 0 {
		return int(s >> 8), int(s & 0xff)
	}
	next := uint32(acc >> 48)
	for l := lookBits + 1; l <= 16; l++ {
		if next < h.limit[l] {
			return int(h.made.symbols[uint8(int32(next>>(16-l))+h.offset[l])]), l
		}
	}
	return 0, 17
}
