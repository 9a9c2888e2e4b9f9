package safetensors

import "math"

// DType is the type of a tensor's elements as the header spells it.
type DType string

// The types that can be converted to numbers.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

// size returns the bytes of an element, 0 for an unknown type. The eight-bit
// floats are listed in headers but not converted.
func (d DType) size() int64 {
	switch d {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case I8, U8, Bool, "F8_E4M3", "F8_E5M2", "F8_E8M0":
		return 1
	}
	return 0
}

// halfToFloat converts an IEEE 754 half-precision number.
func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// bfloatToFloat converts a bfloat16 number: the upper half of a float32.
func bfloatToFloat(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// beyondHalf is the least size of a number that becomes infinite in half precision.
const beyondHalf = 65520

// floatToHalf rounds to the nearest half-precision number, ties to the even one.
func floatToHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b>>16) & 0x8000
	b &= 1<<31 - 1
	switch {
	case b > 0x7f800000: // NaN
		return sign | 0x7e00
	case b >= math.Float32bits(beyondHalf):
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	return sign | uint16((b+0xfff+b>>13&1-(127-15)<<23)>>13)
}

// floatToBfloat rounds to the nearest bfloat16, ties to the even one.
func floatToBfloat(x float32) uint16 {
	b := math.Float32bits(x)
	if b&(1<<31-1) > 0x7f800000 { // NaN
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
