// Package cause joins errors that may have one cause: a device that is lost answers every call with the same error.
package cause

import (
	"errors"
	"slices"
)

// Join is errors.Join without errors whose innermost ones earlier ones have too. Errors that were joined before are
// looked at one by one.
func Join(errs ...error) error {
	var told []error
	for _, err := range parts(errs) {
		if !known(told, err) {
			told = append(told, err)
		}
	}
	if len(told) == 1 {
		return told[0]
	}
	return errors.Join(told...)
}

// several is an error of more than one.
type several interface{ Unwrap() []error }

// joined returns the errors that errors.Join made err of, nil where it is another one: a sentence about several errors
// stays whole.
func joined(err error) []error {
	x, ok := err.(several)
	if !ok || err.Error() != errors.Join(x.Unwrap()...).Error() {
		return nil
	}
	return x.Unwrap()
}

// parts returns errors with those that were joined instead of what joins them, without nil.
func parts(errs []error) (list []error) {
	for _, err := range errs {
		if of := joined(err); of != nil {
			list = append(list, parts(of)...)
		} else if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// known says whether an error's innermost ones are in others.
func known(others []error, err error) bool {
	if x, ok := err.(several); ok {
		return !slices.ContainsFunc(x.Unwrap(), func(e error) bool { return !known(others, e) })
	}
	if next := errors.Unwrap(err); next != nil {
		return known(others, next)
	}
	return slices.ContainsFunc(others, func(o error) bool { return errors.Is(o, err) })
}
