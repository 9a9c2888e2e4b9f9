package jpeg

// lookBits is the length of the codes that a table finds in one look.
const lookBits = 10

// huffman decodes one table of codes (annex C).
type huffman struct {
	ok bool
	// symbols holds for the next lookBits bits the symbol << 8 | length of its code, 0 for a longer code.
	symbols [1 << lookBits]uint16
	// values holds for the next lookBits bits an AC coefficient << 16 | zeros before it << 8 | bits of code and
	// value together, 0 where they are longer or the symbol has no value.
	values [1 << lookBits]int32
	vals   [256]uint8
	// limit[l] is above the codes of length l, as 16 bits from the top; 0 where there is none.
	limit  [17]uint32
	offset [17]int32 // vals[offset[l] + code] of a code of length l
}

// set makes the table of the numbers of codes by length and of their symbols. It returns false for
// numbers that image/jpeg must judge.
func (h *huffman) set(counts *[16]uint8, symbols []byte) bool {
	h.ok = false
	clear(h.symbols[:])
	clear(h.values[:])
	copy(h.vals[:], symbols)
	code, k := uint32(0), 0
	for l := 1; l <= 16; l++ {
		n := int(counts[l-1])
		h.offset[l] = int32(k) - int32(code)
		if code+uint32(n) > 1<<l { // more codes than there are of the length
			return false
		}
		if l <= lookBits {
			for i := range n {
				s := uint16(symbols[k+i])<<8 | uint16(l)
				at := (code + uint32(i)) << (lookBits - l)
				for j := range uint32(1) << (lookBits - l) {
					h.symbols[at+j] = s
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
	for i, s := range h.symbols {
		l, size, run := int(s&0xff), int(s>>8&0xf), int32(s>>12)
		if l == 0 || size == 0 || l+size > lookBits {
			continue
		}
		v := int32(i>>(lookBits-l-size)) & (1<<size - 1)
		h.values[i] = extend(v, size)<<16 | run<<8 | int32(l+size)
	}
	h.ok = true
	return true
}

// extend is EXTEND of section F.2.2.1: the value of size bits, 0 < size <= 16.
func extend(v int32, size int) int32 {
	if v < 1<<(size-1) {
		v += -1<<size + 1
	}
	return v
}

// symbol decodes a symbol, -1 for a code that the table does not have.
func (r *bits) symbol(h *huffman) int {
	if r.n < 16 {
		r.fill()
	}
	if s := h.symbols[r.acc>>(64-lookBits)]; s != 0 {
		l := int(s & 0xff)
		r.acc <<= l
		r.n -= l
		return int(s >> 8)
	}
	return r.longSymbol(h)
}

func (r *bits) longSymbol(h *huffman) int {
	next := uint32(r.acc >> 48)
	for l := lookBits + 1; l <= 16; l++ {
		if next < h.limit[l] {
			r.acc <<= l
			r.n -= l
			return int(h.vals[uint8(int32(next>>(16-l))+h.offset[l])])
		}
	}
	return -1
}
