package weights

import (
	"fmt"
	"math"
	"strings"
)

// A vision transformer has a class token or none, and perhaps registers behind it, such as DeiT's
// distillation token. Its position table has rows for the grid of patches, and may have one for the class
// token and one for each register. Here it has a row for the class token, if there is one, and none for
// registers, which hold their positions themselves.

// tokens is what a position table has rows for.
type tokens struct {
	width, grid int // G = grid*grid patches
	class       bool
	registers   int
	before      int // rows of the table before the patches: none, that of the class token, those of the registers too
}

// classes is the number of class tokens.
func (k tokens) classes() int {
	if k.class {
		return 1
	}
	return 0
}

// tokensOf takes the tensors of a position table, a class token and registers.
func tokensOf(table, class, registers *Tensor) (k tokens, err error) {
	n, d, err := matrixShape(table)
	if err != nil {
		return k, err
	}
	k = tokens{width: d, class: class != nil}
	if class != nil && class.Len() != d {
		return k, odd(class, fmt.Sprintf("%d numbers", d))
	}
	if registers != nil {
		rows, width, err := matrixShape(registers)
		if err != nil || width != d {
			return k, odd(registers, fmt.Sprintf("rows of %d", d))
		}
		k.registers = rows
	}
	choices := []int{k.classes(), 0, k.classes() + k.registers}
	for _, before := range choices {
		if side := int(math.Round(math.Sqrt(float64(max(0, n-before))))); side > 0 && side*side == n-before {
			k.grid, k.before = side, before
			return k, nil
		}
	}
	return k, odd(table, "positions of a square grid of patches")
}

// classToken tells the class token among tensors from the others, nil where it is not there.
func classToken(in []*Tensor) (class, other *Tensor) {
	for _, t := range in {
		if strings.HasSuffix(t.Name, "cls_token") {
			class = t
		} else {
			other = t
		}
	}
	return class, other
}

// joinGridPositions makes a position table (1+G, D), or (G, D) without a class token, of a table and of the class
// token and the registers that there are. A class token without a position gets zeros.
func joinGridPositions(in []*Tensor) (value, error) {
	class, registers := classToken(in[1:])
	k, err := tokensOf(in[0], class, registers)
	if err != nil {
		return value{}, err
	}
	first, d := k.classes(), k.width
	return value{shape: []int{first + k.grid*k.grid, d}, read: func(dst []float32) error {
		clear(dst[:first*d])
		if first > 0 && k.before > 0 {
			if err := in[0].Read(dst[:d], 0); err != nil {
				return err
			}
		}
		return in[0].Read(dst[first*d:], k.before*d)
	}}, nil
}

// joinRegisterTokens makes registers (R, D) of registers, a position table and, where there is one, a class token: with
// their positions, where the table has any for them.
func joinRegisterTokens(in []*Tensor) (value, error) {
	if len(in) == 1 {
		return joinMatrix(in)
	}
	class, _ := classToken(in[2:])
	k, err := tokensOf(in[1], class, in[0])
	if err != nil {
		return value{}, err
	}
	return value{shape: []int{k.registers, k.width}, read: func(dst []float32) error {
		if err := in[0].Read(dst, 0); err != nil || k.before <= k.classes() {
			return err
		}
		at := make([]float32, len(dst))
		if err := in[1].Read(at, k.classes()*k.width); err != nil {
			return err
		}
		for i, x := range at {
			dst[i] += x
		}
		return nil
	}}, nil
}
