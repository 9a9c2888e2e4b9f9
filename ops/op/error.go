package op

import (
	"fmt"

	"gorgonia.org/tensor"
)

// WantShape checks an operand that may be missing (at < 0).
func WantShape(in []tensor.Shape, at int, name string, want ...int) error {
	if at < 0 {
		return nil
	}
	return Need(in[at].Eq(tensor.Shape(want)), "%s must have shape %v (got %v)", name, tensor.Shape(want), in[at])
}

// WantVector returns an error unless s is (n).
func WantVector(s tensor.Shape, name string, n int) error {
	return Need(len(s) == 1 && s[0] == n, "%s must have shape (%d) (got %v)", name, n, s)
}

// BuildError is a mistake in the construction of a graph.
type BuildError struct {
	Op     string         // kind of the op
	Shapes []tensor.Shape // shapes of its operands
	Err    error
}

// Error names the op with the shapes of its operands.
func (e *BuildError) Error() string {
	if len(e.Shapes) == 0 {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s%v: %v", e.Op, e.Shapes, e.Err)
}

// Unwrap returns what was wrong.
func (e *BuildError) Unwrap() error { return e.Err }

// Catch turns a *BuildError panic into an error; other panics go on. Use it as
//
//	defer op.Catch(&err)
//
// in the function that returns the finished graph.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *BuildError:
		*err = r
	default:
		panic(r)
	}
}

// Need returns an error of the given format unless ok: what a shape function checks.
func Need(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// All returns the first error that is not nil.
func All(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
