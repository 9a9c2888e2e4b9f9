// Package cause joins errors that may have one cause: a device that is lost answers every call with the same error.
package cause

import "errors"

// Join is errors.Join without errors whose innermost one an earlier one has too.
func Join(errs ...error) error {
	var told []error
	for _, err := range errs {
		if err != nil && !known(told, err) {
			told = append(told, err)
		}
	}
	if len(told) == 1 {
		return told[0]
	}
	return errors.Join(told...)
}

// known says whether an error's innermost one is in others.
func known(others []error, err error) bool {
	root := err
	for next := errors.Unwrap(root); next != nil; next = errors.Unwrap(root) {
		root = next
	}
	for _, o := range others {
		if errors.Is(o, root) {
			return true
		}
	}
	return false
}
