package parquetfile

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// logical is what the values of a leaf are, as the footer says; nil where it says nothing. The types of the library
// lack FLOAT16.
func logical(f *parquet.File, leaf *parquet.Column) format.LogicalTypeValue {
	if t := leaf.Type().LogicalType(); t != nil && t.Value != nil {
		return t.Value
	}
	i := 0
	for _, x := range f.Metadata().Schema {
		if !x.Type.Valid {
			continue
		}
		if i == leaf.Index() {
			return x.LogicalType.Value
		}
		i++
	}
	return nil
}

// Float returns what makes a number of a value of a leaf, nil if its values are not FLOAT, DOUBLE or FLOAT16.
func Float(f *parquet.File, leaf *parquet.Column) func(parquet.Value) float32 {
	t := leaf.Type()
	switch _, half := logical(f, leaf).(*format.Float16Type); {
	case t.Kind() == parquet.Float:
		return parquet.Value.Float
	case t.Kind() == parquet.Double:
		return func(v parquet.Value) float32 { return float32(v.Double()) }
	case half && t.Kind() == parquet.FixedLenByteArray && t.Length() == 2:
		convert, err := safetensors.Floats(safetensors.F16)
		if err != nil {
			return nil
		}
		one := make([]float32, 1)
		return func(v parquet.Value) float32 {
			convert(one, v.ByteArray())
			return one[0]
		}
	}
	return nil
}

// Text returns what makes a text of a value of a leaf: strings and bytes as they are, and numbers and truth values in
// digits and words. A type whose values would be numbers of another meaning, such as days since 1970, is not supported.
func Text(f *parquet.File, leaf *parquet.Column) (func(parquet.Value) string, error) {
	kind := leaf.Type().Kind()
	switch t := logical(f, leaf).(type) {
	case nil:
		if kind == parquet.Int96 || kind == parquet.FixedLenByteArray {
			return nil, notSupported(leaf, fmt.Sprintf("holds values of type %s", kind), "texts or numbers")
		}
	case *format.StringType, *format.EnumType, *format.JsonType:
	case *format.IntType:
		if !t.IsSigned {
			return unsigned(int(t.BitWidth)), nil
		}
	case *format.DecimalType:
		return decimal(int(t.Scale)), nil
	case *format.Float16Type:
		number := Float(f, leaf)
		if number == nil {
			return nil, notSupported(leaf, "holds values of type FLOAT16 that have not 2 bytes", "texts or numbers")
		}
		return func(v parquet.Value) string { return strconv.FormatFloat(float64(number(v)), 'g', -1, 32) }, nil
	default:
		return nil, notSupported(leaf, fmt.Sprintf("holds values of type %s", t), "texts or numbers")
	}
	return func(v parquet.Value) string {
		if v.Kind() == parquet.ByteArray {
			return string(v.ByteArray())
		}
		return v.String()
	}, nil
}

// unsigned makes digits of a number that lies in a signed one.
func unsigned(bits int) func(parquet.Value) string {
	return func(v parquet.Value) string {
		n := v.Uint64()
		if v.Kind() == parquet.Int32 {
			n = uint64(v.Uint32())
		}
		if bits < 64 {
			n &= 1<<bits - 1
		}
		return strconv.FormatUint(n, 10)
	}
}

// decimal makes digits of a whole number of units of 10^-scale, which lies in an INT32, an INT64 or in bytes, the
// highest first (two's complement).
func decimal(scale int) func(parquet.Value) string {
	return func(v parquet.Value) string {
		n := new(big.Int)
		switch v.Kind() {
		case parquet.Int32:
			n.SetInt64(int64(v.Int32()))
		case parquet.Int64:
			n.SetInt64(v.Int64())
		default:
			b := v.ByteArray()
			n.SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		digits, sign := n.String(), ""
		if digits, sign = strings.TrimPrefix(digits, "-"),
			digits[:len(digits)-len(strings.TrimPrefix(digits, "-"))]; scale <= 0 {
			return sign + digits
		}
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale+1-len(digits)) + digits
		}
		return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
}
