package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// Value is an element of the result: a function of other values, or a leaf.
type Value struct {
	of     *function // nil: a leaf
	args   []*Value
	leaf   leaf
	number float32
}

// leaf says what a value without a function is: an operand by its place, or one of those below.
type leaf int

const (
	constant  leaf = -1 - iota
	diagonal       // 1 on the diagonal of a matrix, else 0
	result         // the element of the op that a gradient is of
	resultsDx      // the gradient of that
)

// function is one function of values. Its methods below are the table of all.
type function struct {
	name string
	// slices sets dst to the function of a, b and c, of its length. dst may be one of them.
	slices func(dst, a, b, c []float32)
	// number is a function of one operand where that is one number for all, and of slices if these are nil.
	number func(x float64) float64
	// scaled is slices where the first of the operands is one number for all.
	scaled   func(dst []float32, a float32, b, c []float32)
	commutes bool // the first two operands
	dear     bool // a few thousand elements are worth a thread
	// device is the expression in CUDA C++ of the names of the operands.
	device string
	// grads are those of the operands for the gradient dy of the function's value y; nil: none flows.
	grads func(x []*Value, y, dy *Value) []*Value
}

func call(f function, args ...*Value) *Value { return &Value{of: &f, args: args} }

// X is operand i.
func X(i int) *Value { return &Value{leaf: leaf(i)} }

// Number is the same number in every element. It is part of the op's identity.
func Number(v float32) *Value { return &Value{leaf: constant, number: v} }

// Diagonal is 1 where an element's row and column have one number, else 0: of an op with two axes.
func Diagonal() *Value { return &Value{leaf: diagonal} }

func (v *Value) is(number float32) bool {
	return v.of == nil && v.leaf == constant && v.number == number
}

// String writes the value as a call of functions, with every digit of its numbers: the identity of an op.
func (v *Value) String() string {
	if v.of != nil {
		args := make([]string, len(v.args))
		for i, a := range v.args {
			args[i] = a.String()
		}
		return v.of.name + "(" + strings.Join(args, ",") + ")"
	}
	switch v.leaf {
	case constant:
		return strconv.FormatFloat(float64(v.number), 'g', -1, 32)
	case diagonal:
		return "diagonal"
	case result:
		return "y"
	case resultsDx:
		return "dy"
	}
	return fmt.Sprint("x", int(v.leaf))
}

// walk calls f with v and all that it is made of, operands before what is made of them.
func (v *Value) walk(f func(*Value)) {
	for _, a := range v.args {
		a.walk(f)
	}
	f(v)
}

// reads says whether v depends on a leaf.
func (v *Value) reads(l leaf) (yes bool) {
	v.walk(func(u *Value) { yes = yes || u.of == nil && u.leaf == l })
	return yes
}

// gradient is that of leaf l, where dy is that of v and y its value. nil: v does not depend on it.
func (v *Value) gradient(l leaf, y, dy *Value) (sum *Value) {
	if v.of == nil {
		if v.leaf == l {
			return dy
		}
		return nil
	}
	for i, d := range v.of.grads(v.args, y, dy) {
		if a := v.args[i]; d != nil && a.reads(l) {
			if d = a.gradient(l, a, d); sum == nil {
				sum = d
			} else if d != nil {
				sum = sum.Plus(d)
			}
		}
	}
	return sum
}
