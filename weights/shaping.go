package weights

import (
	"fmt"
	"math"
	"slices"
)

// odd says that a tensor has a shape that no model of its family has.
func odd(t *Tensor, want string) error {
	return fmt.Errorf("tensor %q of %s has shape %v, want %s: is it of this family?", t.Name, t.file.path, t.Shape,
		want)
}

// count is the number of elements of a shape.
func count(shape []int) int { return (&Tensor{Shape: shape}).Len() }

// rows puts the rows of tensors of one width one after another. One tensor stays as it is.
func rows(in []*Tensor) (value, error) {
	shape := slices.Clone(in[0].Shape)
	for _, t := range in[1:] {
		if len(t.Shape) != len(shape) || len(shape) == 0 || !slices.Equal(t.Shape[1:], shape[1:]) {
			return value{}, odd(t, fmt.Sprintf("rows as %q of shape %v has", in[0].Name, in[0].Shape))
		}
		shape[0] += t.Shape[0]
	}
	return value{shape: shape, read: func(dst []float32) error {
		for _, t := range in {
			if err := t.Read(dst[:t.Len()], 0); err != nil {
				return err
			}
			dst = dst[t.Len():]
		}
		return nil
	}}, nil
}

// joinFlat makes a matrix of the kernel (D, channels, rows, columns) of a convolution over patches.
func joinFlat(in []*Tensor) (value, error) {
	t := in[0]
	if len(t.Shape) != 4 || t.Shape[1] != 3 || t.Shape[2] != t.Shape[3] {
		return value{}, odd(t, "(D, 3, patch, patch)")
	}
	return reshaped(t, t.Shape[0], t.Len()/max(1, t.Shape[0])), nil
}

// reshaped gives a tensor another shape with as many elements.
func reshaped(t *Tensor, shape ...int) value {
	return value{shape: shape, read: func(dst []float32) error { return t.Read(dst, 0) }}
}

// joinVector leaves out axes of length 1: (1, 1, D) is (D).
func joinVector(in []*Tensor) (value, error) {
	t := in[0]
	if n := len(t.Shape); n == 0 || t.Len() != t.Shape[n-1] {
		return value{}, odd(t, "(1, 1, D)")
	}
	return reshaped(t, t.Len()), nil
}

// joinMatrix leaves out a first axis of length 1: (1, T, D) is (T, D).
func joinMatrix(in []*Tensor) (value, error) {
	n, d, err := matrixShape(in[0])
	return reshaped(in[0], n, d), err
}

func matrixShape(t *Tensor) (rows, width int, err error) {
	n := len(t.Shape)
	if n < 2 || n > 3 || n == 3 && t.Shape[0] != 1 || t.Len() == 0 {
		return 0, 0, odd(t, "(1, T, D)")
	}
	return t.Shape[n-2], t.Shape[n-1], nil
}

// joinScalar leaves out all axes: (1) is ().
func joinScalar(in []*Tensor) (value, error) {
	if in[0].Len() != 1 {
		return value{}, odd(in[0], "one number")
	}
	return reshaped(in[0]), nil
}

// joinInverseExp is exp(-x) of a number x: a temperature of the logarithm of a scale.
func joinInverseExp(in []*Tensor) (value, error) {
	v, err := joinScalar(in)
	read := v.read
	v.read = func(dst []float32) error {
		err := read(dst)
		dst[0] = float32(math.Exp(-float64(dst[0])))
		return err
	}
	return v, err
}

// joinTransposed swaps the axes of a matrix.
func joinTransposed(in []*Tensor) (value, error) {
	t := in[0]
	if len(t.Shape) != 2 {
		return value{}, odd(t, "a matrix")
	}
	n, m := t.Shape[0], t.Shape[1]
	return value{shape: []int{m, n}, read: func(dst []float32) error {
		row := make([]float32, m)
		for i := range n {
			if err := t.Read(row, i*m); err != nil {
				return err
			}
			for j, x := range row {
				dst[j*n+i] = x
			}
		}
		return nil
	}}, nil
}

// padded is the rows of a position table that come before the first word: RoBERTa and MPNet number
// positions from that of padding, usually 1, on.
const padded = 2

// joinAfterPadding is joinAfter with the usual padding.
func joinAfterPadding(in []*Tensor) (value, error) { return joinAfter(padded, in) }

// joinAfter leaves out the padded rows before the first word. With a second tensor, of token types, its
// first row is added to every row, as it is to every word.
func joinAfter(padded int, in []*Tensor) (value, error) {
	n, d, err := matrixShape(in[0])
	if err != nil {
		return value{}, err
	}
	if n <= padded {
		return value{}, odd(in[0], fmt.Sprintf("more than the %d rows of padding", padded))
	}
	if len(in) > 1 {
		if _, width, err := matrixShape(in[1]); err != nil || width != d {
			return value{}, odd(in[1], fmt.Sprintf("rows of %d", d))
		}
	}
	return value{shape: []int{n - padded, d}, read: func(dst []float32) error {
		if err := in[0].Read(dst, padded*d); err != nil || len(in) == 1 {
			return err
		}
		kind := make([]float32, d)
		if err := in[1].Read(kind, 0); err != nil {
			return err
		}
		for i := range dst {
			dst[i] += kind[i%d]
		}
		return nil
	}}, nil
}

// joinPlusOne is 1 + x.
func joinPlusOne(in []*Tensor) (value, error) {
	v, err := rows(in)
	read := v.read
	v.read = func(dst []float32) error {
		err := read(dst)
		for i := range dst {
			dst[i]++
		}
		return err
	}
	return v, err
}

// joinHalvesSwapped puts the second half of the rows of a matrix first.
func joinHalvesSwapped(in []*Tensor) (value, error) {
	t := in[0]
	if len(t.Shape) != 2 || t.Shape[0]%2 != 0 {
		return value{}, odd(t, "a matrix with an even number of rows")
	}
	half := t.Len() / 2
	return value{shape: slices.Clone(t.Shape), read: func(dst []float32) error {
		if err := t.Read(dst[:half], half); err != nil {
			return err
		}
		return t.Read(dst[half:], 0)
	}}, nil
}

// joinWithFirst is a table with the first row of a second one, if there is one, added to every row.
func joinWithFirst(in []*Tensor) (value, error) {
	if len(in) == 1 {
		return rows(in)
	}
	return joinAfter(0, in)
}
